package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a Writer works with.
type Options struct {
	// To takes the lines, several with one call, which may block for any time.
	To io.Writer
	// Lost returns the line that replaces so many missing lines.
	Lost func(lines int64) []byte
	// Room is how many bytes of lines may wait while To is busy; zero means 4 MiB.
	Room int
	// Reserved is how many lines of Reserve may wait besides; zero means 256.
	Reserved int
	// Patience is how long one call of To may take before To counts as stalled; zero means 5 s.
	Patience time.Duration
	// Retry is when To is tried again after an error; zero means 1 s.
	Retry time.Duration
	// Linger is how long a line waits to be written with others, unless it is Reserved, or many
	// wait; zero means 10 ms. A process that is killed loses that much, even if To works.
	Linger time.Duration
	// Piece is how many bytes one call of To gets at most, longer lines apart; zero means 4 KiB. A
	// pipe takes that many whole or not at all (PIPE_BUF), so that lines are not torn where several
	// processes write to one pipe.
	Piece int
	Now   func() time.Time // nil means time.Now
}

// Memory is taken in chunks, of which a few are kept for the next lines.
const (
	chunk     = 64 << 10 // bytes
	mostSpare = 8        // chunks
)

// many is the number of waiting bytes from which lines do not linger.
const many = chunk / 2

// Writer is an io.Writer that takes whole lines, one with each call, keeps their order, and never
// waits. Close ends it.
type Writer struct {
	options Options
	total   atomic.Int64 // lines that were lost

	mu      sync.Mutex
	more    sync.Cond // signals that there is something to write, or the end
	written sync.Cond // signals that done has grown
	queue   []batch   // what waits
	size    int       // bytes of it
	missing int64     // lines that were lost after the last one of it
	spare   [][]byte  // chunks that wait for use
	taken   uint64    // batches that were begun
	done    uint64    // batches that are over
	places  int       // of reserved lines: given out, or waiting
	failed  error     // of the last batch
	closing bool
	urgent  bool // what waits does not linger

	start time.Time
	began atomic.Int64  // when the call of To began that is under way, in ns after start; 0: there is none
	torn  bool          // To has taken only the beginning of a line; used by run alone
	hurry chan struct{} // has room for one token: urgent was set
	end   chan struct{}
	ended chan struct{}
}

// NewWriter makes a Writer.
func NewWriter(o Options) *Writer {
	o.Room = cmp.Or(o.Room, 4<<20)
	o.Reserved = cmp.Or(o.Reserved, 256)
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	o.Retry = cmp.Or(o.Retry, time.Second)
	o.Piece = cmp.Or(o.Piece, 4096)
	o.Linger = cmp.Or(o.Linger, 10*time.Millisecond)
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{options: o, start: o.Now(), hurry: make(chan struct{}, 1), end: make(chan struct{}),
		ended: make(chan struct{})}
	w.more.L, w.written.L = &w.mu, &w.mu
	go w.writeUntilClose()
	return w
}

// Write takes one line, or counts it as lost. It never fails.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing || w.missing > 0 || w.size+len(line) > w.options.Room {
		w.missing++
		w.total.Add(1)
		w.more.Signal()
	} else {
		w.addLine(line, false)
	}
	return len(line), nil
}

// addLine adds a line at the end of the queue. The caller holds mu.
func (w *Writer) addLine(line []byte, reserved bool) {
	last := len(w.queue) - 1
	if last < 0 || len(w.queue[last].text)+len(line) > chunk {
		w.queue = append(w.queue, batch{text: w.emptyChunk()})
		last++
	}
	w.queue[last].addLine(line, reserved)
	w.size += len(line)
	if reserved || w.size >= many {
		w.wakeWriter()
	}
	w.more.Signal()
}

// wakeWriter has the waiting lines written at once. The caller holds mu.
func (w *Writer) wakeWriter() {
	if w.urgent {
		return
	}
	w.urgent = true
	select {
	case w.hurry <- struct{}{}:
	default: // the token before was not taken yet, which is as good
	}
}

// putBack puts reserved lines in front of the queue. The caller holds mu.
func (w *Writer) putBack(b batch) {
	if b.isEmpty() {
		return
	}
	w.size += len(b.text) // before then, which adds what is counted already
	if len(w.queue) == 0 {
		w.queue = append(w.queue, b)
	} else {
		w.queue[0] = b.withBehind(w.queue[0])
	}
}

// emptyChunk returns an empty chunk. The caller holds mu.
func (w *Writer) emptyChunk() []byte {
	last := len(w.spare) - 1
	if last < 0 {
		return make([]byte, 0, chunk)
	}
	memory := w.spare[last]
	w.spare = w.spare[:last]
	return memory
}

// Lost returns how many lines were lost so far.
func (w *Writer) Lost() int64 { return w.total.Load() }

// Reserve reserves room for one line. Its error says why no line can be written now.
func (w *Writer) Reserve() (*Reserved, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closing:
		return nil, errors.New("the process ends")
	case w.failed != nil:
		return nil, fmt.Errorf("the last line failed: %w", w.failed)
	case w.isStalled():
		return nil, fmt.Errorf("it was not read for more than %s", w.options.Patience)
	case w.places >= w.options.Reserved:
		return nil, fmt.Errorf("%d lines that must not be lost wait to be written", w.places)
	}
	w.places++
	return &Reserved{writer: w}, nil
}

// isStalled reports whether To seems not to take lines.
func (w *Writer) isStalled() bool {
	began := w.began.Load()
	return began != 0 && w.sinceStart()-time.Duration(began) > w.options.Patience
}

// sinceStart returns the time since start, and never 0.
func (w *Writer) sinceStart() time.Duration { return w.options.Now().Sub(w.start) + 1 }

// Reserved is room for one line, which is not lost as long as the process lives. It is not safe for
// concurrent use.
type Reserved struct {
	writer *Writer
	over   bool
}

// Write takes the line. Further ones are ordinary lines.
func (r *Reserved) Write(line []byte) (int, error) {
	if r.over {
		return r.writer.Write(line)
	}
	r.over = true
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.writer.addLine(line, true)
	return len(line), nil
}

// Release gives the room back if no line took it.
func (r *Reserved) Release() {
	if r.over {
		return
	}
	r.over = true
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.writer.places--
}

// Flush waits until what was handed over before has been written or given up, or until ctx ends.
func (w *Writer) Flush(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.written.Broadcast()
	})()
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.taken + uint64(len(w.queue))
	if w.missing > 0 {
		last++
	}
	w.wakeWriter()
	for w.done < last && ctx.Err() == nil {
		w.written.Wait()
	}
}

// Close writes what waits, until ctx ends, and takes no lines any more.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closing {
		w.closing = true
		close(w.end)
		w.more.Signal()
	}
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-ctx.Done():
		return fmt.Errorf("write the last lines of the log: %w", ctx.Err())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// writeUntilClose writes until Close.
func (w *Writer) writeUntilClose() {
	defer close(w.ended)
	retry, linger := time.NewTimer(0), time.NewTimer(0)
	defer retry.Stop()
	defer linger.Stop()
	for {
		w.awaitLines(linger)
		b, ok := w.takeBatch()
		if !ok {
			return
		}
		if w.writeBatch(b) {
			continue
		}
		retry.Reset(w.options.Retry)
		select {
		case <-retry.C:
		case <-w.end:
			if b, ok := w.takeBatch(); !ok || !w.writeBatch(b) { // the end does not wait, and tries once more
				return
			}
		}
	}
}

// awaitLines waits for something to write, and then for more of it: a wake and a call of To cost
// more than a line.
func (w *Writer) awaitLines(linger *time.Timer) {
	w.mu.Lock()
	for len(w.queue) == 0 && w.missing == 0 && !w.closing {
		w.urgent = false // nothing waits
		w.more.Wait()
	}
	urgent := w.urgent || w.closing
	w.mu.Unlock()
	if urgent {
		return
	}
	linger.Reset(w.options.Linger)
	select {
	case <-linger.C:
	case <-w.hurry:
	case <-w.end:
	}
}

// takeBatch waits for something to write; there is nothing more after Close.
func (w *Writer) takeBatch() (batch, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.missing > 0 && w.size <= w.options.Room/2 { // not each time that one line fits
			w.queue = append(w.queue, batch{missing: w.missing, text: w.emptyChunk()})
			w.missing = 0
		}
		if len(w.queue) > 0 {
			b := w.queue[0]
			w.queue = slices.Delete(w.queue, 0, 1)
			w.size -= len(b.text)
			w.taken++
			return b, true
		}
		if w.closing {
			return batch{}, false
		}
		w.more.Wait()
	}
}

// writeBatch writes b. After an error the reserved lines that To did not take wait for the next
// time, and the others are lost.
func (w *Writer) writeBatch(b batch) bool {
	memory := b.text[:0]
	err := w.putMissing(&b)
	for err == nil && len(b.text) > 0 {
		var n int
		n, err = w.callTo(b.text[:b.nextPiece(w.options.Piece)])
		if reserved := b.dropBytes(n); reserved > 0 {
			w.freePlaces(reserved)
		}
	}
	lost, kept := b.takeReserved()
	w.total.Add(lost)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
	kept.missing = b.missing + lost
	w.putBack(kept)
	if cap(memory) == chunk && len(w.spare) < mostSpare {
		w.spare = append(w.spare, memory)
	}
	w.done++
	w.written.Broadcast()
	return err == nil
}

// putMissing writes the line that says how many are missing.
func (w *Writer) putMissing(b *batch) error {
	if b.missing == 0 {
		return nil
	}
	_, err := w.callTo(w.options.Lost(b.missing))
	if err == nil {
		b.missing = 0
	}
	return err
}

// freePlaces frees the places of reserved lines that were written.
func (w *Writer) freePlaces(lines int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places -= lines
}

// callTo calls To once. It returns how many bytes of whole lines To took; if it took all there is
// no error.
func (w *Writer) callTo(text []byte) (int, error) {
	w.began.Store(int64(w.sinceStart()))
	defer w.began.Store(0)
	if w.torn {
		if n, err := w.options.To.Write([]byte{'\n'}); n == 0 {
			return 0, err
		}
		w.torn = false
	}
	n, err := w.options.To.Write(text)
	if n == len(text) {
		return n, nil
	}
	whole := bytes.LastIndexByte(text[:n], '\n') + 1
	w.torn = n > whole
	return whole, err
}
