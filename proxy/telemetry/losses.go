package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// losses says what does not leave this process: at once, and then once a minute at most, with all that was lost since the line before.
type losses struct {
	log   *slog.Logger
	now   func() time.Time
	clean scrubber // an exporter quotes its URL and headers

	mu     sync.Mutex
	spans  int
	full   bool  // some of them were dropped by the queue
	failed error // what the SDK, or an exporter, said last
	next   time.Time
}

// lossesPeriod is how often a line may be written.
const lossesPeriod = time.Minute

var errQueueFull = errors.New("the queue of spans is full: record fewer deliveries (OTEL_TRACES_SAMPLER), or make it longer (OTEL_BSP_MAX_QUEUE_SIZE)")

// drop is for spans that the queue has no room for.
func (l *losses) drop(spans int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans, l.full = l.spans+spans, true
	l.sayAfter(l.next)
}

// fail is for what could not be sent, with the number of spans in it.
func (l *losses) fail(why error, spans int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans, l.failed = l.spans+spans, why
	l.sayAfter(l.next)
}

// run says what nothing came after, until ctx ends, and then the rest.
func (l *losses) run(ctx context.Context, look <-chan time.Time) {
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
	text := l.clean.text(why.Error())
	if l.spans > 0 {
		l.log.Warn("telemetry.lost", "error", text, "spans", l.spans)
	} else {
		l.log.Warn("telemetry.lost", "error", text)
	}
	l.spans, l.full, l.failed, l.next = 0, false, nil, at.Add(lossesPeriod)
}

// queue counts the spans that do not arrive. The SDK's batches drop what their queue has no room for and tell nobody, so no more is let in here
// than it holds.
type queue struct {
	sdktrace.SpanProcessor // the SDK's batches
	losses                 *losses
	room                   int64
	inside                 atomic.Int64 // handed to the batches, and by them not yet to the exporter

	mu   sync.Mutex
	over bool // what is still inside was counted as lost
}

// newQueue makes one in front of exporter.
func newQueue(exporter sdktrace.SpanExporter, room int, l *losses) *queue {
	q := &queue{losses: l, room: int64(room)}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(&countedExporter{exporter, q}, sdktrace.WithMaxQueueSize(room))
	return q
}

// queueSize is OTEL_BSP_MAX_QUEUE_SIZE; the SDK's default where that is no size.
func queueSize(env func(string) string) int {
	if n, err := strconv.Atoi(env("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return n
	}
	return sdktrace.DefaultMaxQueueSize
}

// OnEnd implements sdktrace.SpanProcessor.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.inside.Add(1) > q.room {
		q.inside.Add(-1)
		q.losses.drop(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// Shutdown implements sdktrace.SpanProcessor. What has not left when ctx ends is lost.
func (q *queue) Shutdown(ctx context.Context) error {
	err := q.SpanProcessor.Shutdown(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if left := q.inside.Load(); left > 0 && err != nil {
		q.losses.fail(err, int(left))
	}
	return err
}

// leave lets spans out, to the exporter; false where they were counted as lost.
func (q *queue) leave(spans int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inside.Add(-int64(spans))
	return !q.over
}

// countedExporter says what an export has lost. The batches hear of no error, because they would say the same without its count.
type countedExporter struct {
	sdktrace.SpanExporter
	queue *queue
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *countedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if !e.queue.leave(len(spans)) {
		return nil
	}
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.queue.losses.fail(err, len(spans))
	}
	return nil
}
