package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"hooklock/idem"
)

// lossesIn are the spans that lines of telemetry.lost count, and what they say.
func lossesIn(t *testing.T, log string) (lost int, said []string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var l struct {
			Msg, Error string
			Spans      int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Msg == "telemetry.lost" {
			lost += l.Spans
			said = append(said, l.Error)
		}
	}
	return lost, said
}

func TestEachSpanArrivesOrIsCountedAsLost(t *testing.T) {
	var mu sync.Mutex
	arrived, refusals := 0, 0
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request collector.ExportTraceServiceRequest
		body, _ := io.ReadAll(r.Body)
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if refusals++; refusals%3 == 0 {
			w.WriteHeader(http.StatusBadRequest) // which is not tried again
			return
		}
		got := make(chan *spans.Span, 1000)
		unpack(&request, got)
		arrived += len(got)
	}))
	t.Cleanup(busy.Close)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", busy.URL, "OTEL_METRICS_EXPORTER", "none", "OTEL_BSP_MAX_QUEUE_SIZE",
		"32", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	const deliveries = 2000
	for range deliveries {
		d := executed()
		trace := r.Begin(d, idem.TraceContext{}, nil)
		trace.Call()
		trace.End(d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	lost, said := lossesIn(t, r.log.String())
	if made := deliveries * 4; arrived+lost != made || arrived == 0 || lost == 0 {
		t.Errorf("%d arrived and %d are said to be lost of %d: %v", arrived, lost, made, said)
	}
	all := strings.Join(said, "\n")
	if len(said) > 2 || !strings.Contains(all, "OTEL_BSP_MAX_QUEUE_SIZE") || !strings.Contains(all, "400") {
		t.Errorf("%d lines: %s", len(said), all)
	}
}

func TestWhatIsLeftAtTheEndIsCountedAsLost(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+ln.Addr().String(), "OTEL_METRICS_EXPORTER", "none",
		"OTEL_BSP_MAX_QUEUE_SIZE", "32", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	const deliveries = 100
	for range deliveries {
		d := executed()
		trace := r.Begin(d, idem.TraceContext{}, nil)
		trace.Call()
		trace.End(d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); err == nil {
		t.Error("nothing was lost")
	}
	lost, said := lossesIn(t, r.log.String())
	if made := deliveries * 4; lost != made { // one batch is on its way, and has no answer
		t.Errorf("%d are said to be lost of %d: %q", lost, made, said)
	}
}

// TestOfAPartialSuccessOnlyWhatWasRejectedIsLost, and what a collector says of all that it took is
// logged.
func TestOfAPartialSuccessOnlyWhatWasRejectedIsLost(t *testing.T) {
	for rejected, says := range map[int64]string{3: "no room for all", 0: "slow down"} {
		picky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{
				PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: says},
			})
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write(answer)
		}))
		r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", picky.URL, "OTEL_METRICS_EXPORTER", "none")
		for range 5 {
			d := executed()
			trace := r.Begin(d, idem.TraceContext{}, nil)
			trace.Call()
			trace.End(d)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		picky.Close()
		lost, said := lossesIn(t, r.log.String())
		if int64(lost) != rejected || !strings.Contains(strings.Join(said, "\n"), says) {
			t.Errorf("%d spans are said to be lost, and %d were rejected: %q", lost, rejected, said)
		}
	}
}

// stuck is an exporter that sends nothing before it is let.
type stuck struct {
	entered, let chan struct{}
	sent         atomic.Int64
}

func (s *stuck) ExportSpans(_ context.Context, all []sdktrace.ReadOnlySpan) error {
	s.entered <- struct{}{}
	<-s.let
	s.sent.Add(int64(len(all)))
	return nil
}

func (s *stuck) Shutdown(context.Context) error { return nil }

// TestNothingIsSentAfterItWasCountedAsLost. A batch that is on its way has no answer when the time
// ends: it counts, too, and may arrive.
func TestNothingIsSentAfterItWasCountedAsLost(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	var out bytes.Buffer
	l := &losses{log: slog.New(slog.NewJSONHandler(&out, nil)), now: time.Now}
	exporter := &stuck{entered: make(chan struct{}, 100), let: make(chan struct{})}
	q := newQueue(exporter, 32, l)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(q))
	tracer := provider.Tracer("test")
	made := 0
	make8 := func() {
		for range 8 {
			_, span := tracer.Start(t.Context(), "span")
			span.End()
			made++
		}
	}
	make8()
	<-exporter.entered // and the first batch is on its way
	make8()
	make8()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Shutdown(ctx); err == nil {
		t.Error("everything left")
	}
	close(exporter.let)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); q.inside.Load() > 0 || exporter.sent.Load() == 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d are still inside", q.inside.Load())
		}
	}
	lost, _ := lossesIn(t, out.String())
	if sent := int(exporter.sent.Load()); lost != made || sent != 8 {
		t.Errorf("%d sent and %d lost of %d", sent, lost, made)
	}
}

func TestWhatIsLostIsSaidOnceAMinuteWithItsCount(t *testing.T) {
	var out bytes.Buffer
	now := began
	l := &losses{log: slog.New(slog.NewJSONHandler(&out, nil)), now: func() time.Time { return now }}
	look, over := make(chan time.Time), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(over)
		l.logUntilEnd(ctx, look)
	}()
	at := func(since time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		now = began.Add(since)
	}
	check := func(spans int, wants ...string) {
		t.Helper()
		look <- began
		look <- began // so the look before is over
		l.mu.Lock()
		defer l.mu.Unlock()
		lost, said := lossesIn(t, out.String())
		out.Reset()
		if lost != spans || len(said) != len(wants) {
			t.Fatalf("%d spans in %q", lost, said)
		}
		for i, want := range wants {
			if !strings.Contains(said[i], want) {
				t.Errorf("%q does not say %q", said[i], want)
			}
		}
	}
	check(0)
	l.countDropped(1)
	check(1, "queue")
	l.countDropped(2)
	l.countFailed(errors.New("no route to host"), 5)
	l.countFailed(errors.New("connection refused"), 0)
	at(lossesPeriod - time.Second)
	check(0)
	at(lossesPeriod)
	check(7, "connection refused; "+errQueueFull.Error())
	at(2 * lossesPeriod)
	check(0)
	l.countFailed(errors.New("no route to host"), 0)
	check(0, "no route to host")
	l.countDropped(3)
	cancel()
	<-over
	if lost, _ := lossesIn(t, out.String()); lost != 3 {
		t.Errorf("%d spans at the end", lost)
	}
}

func TestADeliveryThatIsNotSampledHasNoSpanToLookFor(t *testing.T) {
	url, _ := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_SAMPLER",
		"traceidratio", "OTEL_TRACES_SAMPLER_ARG", "1e-18")
	if trace := r.Begin(executed(), idem.ParseTrace(sendersTrace), nil); trace != nil {
		t.Errorf("%s", trace.TraceParent())
	}
}

func TestNoSpanLinksToOneThatWasNotRecorded(t *testing.T) {
	url, got := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none")
	d := met("replayed", 200)
	d.Met = strings.TrimSuffix(firstTrace, "1") + "0"
	r.Begin(d, idem.TraceContext{}, nil).End(d)
	if s := flush(t, r, got)["POST /plain/{account}"]; s == nil || len(s.GetLinks()) != 0 {
		t.Errorf("%v", s)
	}
}

func TestAQueueSizeThatIsNoneIsTheDefault(t *testing.T) {
	for text, want := range map[string]int{"": 2048, "16": 16, "-1": 2048, "0": 2048, "many": 2048} {
		if got := queueSize(func(string) string { return text }); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}
