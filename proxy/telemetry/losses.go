package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// losses logs what could not be exported: at once, and then once a minute at most, with all losses
// since the line before.
type losses struct {
	log   *slog.Logger
	now   func() time.Time
	clean scrubber // an exporter quotes its URL and headers

	mu     sync.Mutex
	spans  int
	full   bool  // some of them were dropped by the queue
	failed error // the last error of the SDK, or of an exporter
	next   time.Time
}

// lossesPeriod is how often a line may be written.
const lossesPeriod = time.Minute

var errQueueFull = errors.New("the queue of spans is full: record fewer deliveries (OTEL_TRACES_SAMPLER), or make " +
	"it longer (OTEL_BSP_MAX_QUEUE_SIZE)")

// countDropped counts spans that the queue has no room for.
func (l *losses) countDropped(spans int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans, l.full = l.spans+spans, true
	l.sayAfter(l.next)
}

// countFailed counts an export that failed, with the number of spans in it.
func (l *losses) countFailed(why error, spans int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans, l.failed = l.spans+spans, why
	l.sayAfter(l.next)
}

// logUntilEnd logs losses that no other loss came after, until ctx ends, and then the rest.
func (l *losses) logUntilEnd(ctx context.Context, look <-chan time.Time) {
	for {
		select {
		case <-look:
			l.mu.Lock()
			l.sayAfter(l.next)
			l.mu.Unlock()
		case <-ctx.Done():
			l.mu.Lock()
			l.sayAfter(time.Time{})
			l.mu.Unlock()
			return
		}
	}
}

// sayAfter writes a line, if there is something to say and it is late enough. The caller holds mu.
func (l *losses) sayAfter(earliest time.Time) {
	at, why := l.now(), l.failed
	switch {
	case !l.full && why == nil || at.Before(earliest):
		return
	case l.full && why != nil:
		why = fmt.Errorf("%w; %w", why, errQueueFull)
	case l.full:
		why = errQueueFull
	}
	text := l.clean.scrubText(why.Error())
	if l.spans > 0 {
		l.log.Warn("telemetry.lost", "error", text, "spans", l.spans)
	} else {
		l.log.Warn("telemetry.lost", "error", text)
	}
	l.spans, l.full, l.failed, l.next = 0, false, nil, at.Add(lossesPeriod)
}

// queue counts the spans that are lost. The SDK's batches drop spans for which their queue has no
// room without a report, so no more are let in here than it holds.
type queue struct {
	sdktrace.SpanProcessor // the SDK's batches
	losses                 *losses
	room                   int64
	inside                 atomic.Int64 // in the batches, and not yet with the exporter

	mu        sync.Mutex
	exporting int  // with the exporter, and not answered yet
	over      bool // the rest, inside or exporting, was counted as lost
}

// newQueue makes one in front of exporter.
func newQueue(exporter sdktrace.SpanExporter, room int, l *losses) *queue {
	q := &queue{losses: l, room: int64(room)}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(&countedExporter{exporter, q}, sdktrace.WithMaxQueueSize(room))
	return q
}

// queueSize returns OTEL_BSP_MAX_QUEUE_SIZE; the SDK's default if that is no size.
func queueSize(env func(string) string) int {
	if n, err := strconv.Atoi(env("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 && n <= mostSpans {
		return n
	}
	return sdktrace.DefaultMaxQueueSize
}

// OnEnd implements sdktrace.SpanProcessor.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.inside.Add(1) > q.room {
		q.inside.Add(-1)
		q.losses.countDropped(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// Shutdown implements sdktrace.SpanProcessor. Spans that have not left when ctx ends are lost.
func (q *queue) Shutdown(ctx context.Context) error {
	err := q.SpanProcessor.Shutdown(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if left := int(q.inside.Load()) + q.exporting; left > 0 && err != nil {
		q.losses.countFailed(err, left)
	}
	return err
}

// letOut lets spans out, to the exporter; false if they were counted as lost.
func (q *queue) letOut(spans int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inside.Add(-int64(spans))
	if q.over {
		return false
	}
	q.exporting += spans
	return true
}

// endExport takes note of the end of an export. lost of its spans are lost.
func (q *queue) endExport(spans, lost int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.exporting -= spans; err != nil && !q.over {
		q.losses.countFailed(err, lost)
	}
}

// countedExporter reports what an export has lost. It returns no error to the batches, which would
// log the same without its count.
type countedExporter struct {
	sdktrace.SpanExporter
	queue *queue
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *countedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if !e.queue.letOut(len(spans)) {
		return nil
	}
	lost, err := len(spans), e.SpanExporter.ExportSpans(ctx, spans)
	if rejected, partly := rejectedOf(err); partly {
		lost = rejected
	}
	e.queue.endExport(len(spans), lost, err)
	return nil
}

// rejectedOf returns how many spans a collector rejected that took the others. The type of that
// error, PartialSuccess, is internal to each exporter, so its field is found by name.
func rejectedOf(err error) (spans int, partly bool) {
	var answer interface {
		error
		As(target any) bool
	}
	if !errors.As(err, &answer) {
		return 0, false
	}
	value := reflect.ValueOf(answer)
	if value.Kind() != reflect.Struct {
		return 0, false
	}
	field := value.FieldByName("RejectedItems")
	if !field.IsValid() || !field.CanInt() {
		return 0, false
	}
	return int(field.Int()), true
}
