package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// place is where lines go. It can be made to hang, and to fail.
type place struct {
	mu      sync.Mutex
	changed *sync.Cond
	text    bytes.Buffer
	hangs   bool
	inside  int   // calls that hang
	fails   error // after the first bytes
	bytes   int   // that it takes of a call that fails
	calls   int
}

func newPlace() *place {
	p := &place{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *place) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	p.inside++
	p.changed.Broadcast()
	for p.hangs {
		p.changed.Wait()
	}
	p.inside--
	if p.fails != nil {
		n := min(p.bytes, len(b))
		p.text.Write(b[:n])
		return n, p.fails
	}
	p.changed.Broadcast()
	return p.text.Write(b)
}

// set changes how it behaves.
func (p *place) set(change func(*place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
	p.changed.Broadcast()
}

// await waits until something is so.
func (p *place) await(is func(*place) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !is(p) {
		p.changed.Wait()
	}
}

func (p *place) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Split(strings.TrimSuffix(p.text.String(), "\n"), "\n")
}

// open makes a Writer to p whose retries are quick; the end of the test closes it.
func open(t testing.TB, p io.Writer, change func(*Options)) *Writer {
	t.Helper()
	o := Options{To: p, Retry: time.Millisecond, Lost: func(n int64) []byte { return fmt.Appendf(nil, "lost %d\n", n) }}
	if change != nil {
		change(&o)
	}
	w := NewWriter(o)
	t.Cleanup(func() { _ = w.Close(t.Context()) }) // t.Context has ended: goleak waits for the writer
	return w
}

// closed closes w, and everything that was handed over has been written.
func closed(t *testing.T, w *Writer) {
	t.Helper()
	if err := w.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func say(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\n") }

func TestLinesKeepTheirOrder(t *testing.T) {
	p := newPlace()
	w := open(t, p, nil)
	const who, each = 8, 500
	var all sync.WaitGroup
	for i := range who {
		all.Go(func() {
			for n := range each {
				say(w, fmt.Sprintf("%d %d", i, n))
			}
		})
	}
	all.Wait()
	closed(t, w)
	next := [who]int{}
	for _, line := range p.lines() {
		var i, n int
		if _, err := fmt.Sscanf(line, "%d %d", &i, &n); err != nil || n != next[i] {
			t.Fatalf("%q after %v", line, next)
		}
		next[i]++
	}
	for i, n := range next {
		if n != each {
			t.Errorf("%d lines of %d", n, i)
		}
	}
	if w.Lost() != 0 {
		t.Errorf("%d lost", w.Lost())
	}
}

func TestALogCallNeverWaitsAndMissingLinesAreReportedInTheirPlace(t *testing.T) {
	p := newPlace()
	p.hangs = true
	w := open(t, p, func(o *Options) { o.Room = 66 })
	say(w, "first")
	p.await(func(p *place) bool { return p.inside == 1 })
	const line = "0123456789abcde" // 16 bytes with its end: four fit
	for range 7 {
		say(w, line)
	}
	if w.Lost() != 3 {
		t.Errorf("%d lost", w.Lost())
	}
	say(w, "") // fits, but would stand before what was lost
	p.set(func(p *place) { p.hangs = false })
	w.Flush(context.Background())
	say(w, "later")
	closed(t, w)
	if got, want := strings.Join(p.lines(), " "), strings.Repeat(line+" ", 4); got != "first "+want+"lost 4 later" {
		t.Errorf("%s", got)
	}
}

func TestReservedLinesAreWrittenAlthoughThereIsNoRoomForOthers(t *testing.T) {
	p := newPlace()
	p.hangs = true
	w := open(t, p, func(o *Options) { o.Room, o.Reserved = 8, 2 })
	say(w, "first")
	p.await(func(p *place) bool { return p.inside == 1 })
	a, errA := w.Reserve()
	b, errB := w.Reserve()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if _, err := w.Reserve(); err == nil {
		t.Error("more room than there is")
	}
	b.Release()
	b.Release()
	c, err := w.Reserve()
	if err != nil {
		t.Fatal("given back, and not free:", err)
	}
	for range 10 {
		say(w, "ordinary")
	}
	say(a, "change 1")
	say(c, "change 2")
	c.Release()
	if _, err := w.Reserve(); err == nil {
		t.Error("two wait, and there is room for another one")
	}
	p.set(func(p *place) { p.hangs = false })
	w.Flush(context.Background())
	for range 2 {
		if _, err := w.Reserve(); err != nil {
			t.Error("both were written:", err)
		}
	}
	closed(t, w)
	if got := strings.Join(p.lines(), ", "); got != "first, change 1, change 2, lost 10" {
		t.Errorf("%s", got)
	}
}

func TestNothingIsReservedWhileTheLogIsNotRead(t *testing.T) {
	p := newPlace()
	p.hangs = true
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	w := open(t, p, func(o *Options) {
		o.Patience = time.Minute
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	say(w, "first")
	p.await(func(p *place) bool { return p.inside == 1 })
	r, err := w.Reserve()
	if err != nil {
		t.Fatal("a slow reader is none that is gone:", err)
	}
	mu.Lock()
	now = now.Add(time.Minute + 1)
	mu.Unlock()
	if _, err := w.Reserve(); err == nil || !strings.Contains(err.Error(), "1m0s") {
		t.Error(err)
	}
	say(r, "what was reserved before")
	p.set(func(p *place) { p.hangs = false })
	w.Flush(context.Background())
	if _, err := w.Reserve(); err != nil {
		t.Error("somebody reads again:", err)
	}
	closed(t, w)
	if got := strings.Join(p.lines(), ", "); got != "first, what was reserved before" {
		t.Error(got)
	}
}

func TestAfterAnErrorOrdinaryLinesAreCountedAndReservedOnesAreWrittenLater(t *testing.T) {
	full := errors.New("no space left on device")
	p := newPlace()
	p.hangs = true
	w := open(t, p, nil)
	say(w, "first")
	p.await(func(p *place) bool { return p.inside == 1 })
	r, err := w.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	say(w, "second")
	say(w, "third")
	say(r, "change")
	say(w, "fourth")
	calls := 0
	p.set(func(p *place) { p.hangs, p.fails, p.bytes, calls = false, full, 3, p.calls })
	p.await(func(p *place) bool { return p.calls > calls+2 })
	if _, err := w.Reserve(); !errors.Is(err, full) {
		t.Error("nothing can be written, and there is room:", err)
	}
	p.set(func(p *place) { p.fails = nil })
	w.Flush(context.Background())
	say(w, "fifth")
	closed(t, w)
	got := strings.Join(p.lines(), ", ")
	if !strings.HasPrefix(got, "fir, ") || !strings.HasSuffix(got, ", lost 4, change, fifth") || w.Lost() != 4 {
		t.Errorf("%s; %d lost", got, w.Lost())
	}
}

func TestLinesThatWaitBehindAnErrorTakeNoRoomAfterwards(t *testing.T) {
	p := newPlace()
	p.hangs = true
	const line = "0123456789abcdef0123456789abcdef"
	w := open(t, p, func(o *Options) { o.Room = 2 * len(line) })
	say(w, "first")
	p.await(func(p *place) bool { return p.inside == 1 })
	say(w, line)
	p.set(func(p *place) { p.hangs, p.fails = false, errors.New("no space left on device") })
	p.await(func(p *place) bool { return p.calls > 2 })
	p.set(func(p *place) { p.fails = nil })
	w.Flush(context.Background())
	say(w, line)
	closed(t, w)
	if got := strings.Join(p.lines(), ", "); got != "lost 2, "+line {
		t.Errorf("%s; %d lost", got, w.Lost())
	}
}

func TestTheEndWaitsForABoundedTime(t *testing.T) {
	p := newPlace()
	p.hangs = true
	w := open(t, p, nil)
	say(w, "first")
	p.await(func(p *place) bool { return p.inside == 1 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.Flush(ctx)
	if _, err := w.Reserve(); err == nil {
		t.Error("room for a line that nobody will write")
	}
	p.set(func(p *place) { p.hangs = false })
	closed(t, w)
	if got := p.lines(); len(got) != 1 || got[0] != "first" {
		t.Error(got)
	}
}

func TestAnEndUnderAnErrorTriesOnceMore(t *testing.T) {
	p := newPlace()
	p.fails = errors.New("broken pipe")
	w := open(t, p, func(o *Options) { o.Retry = time.Hour })
	say(w, "first")
	p.await(func(p *place) bool { return p.calls == 1 })
	p.set(func(p *place) { p.fails = nil })
	closed(t, w)
	if got := p.lines(); len(got) != 1 || got[0] != "lost 1" {
		t.Error(got)
	}
}

// TestAnEndBehindAnErrorWritesAllThatWaits: what waits may be more than is written together.
func TestAnEndBehindAnErrorWritesAllThatWaits(t *testing.T) {
	var text bytes.Buffer
	failing, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := open(t, writerFunc(func(b []byte) (n int, err error) {
		once.Do(func() {
			close(failing)
			<-goOn
			err = errors.New("no space left on device")
		})
		if err == nil {
			n, err = text.Write(b)
		}
		return n, err
	}), func(o *Options) { o.Retry = time.Hour })
	say(w, "first")
	<-failing
	const more = 20
	for range more {
		say(w, strings.Repeat("x", chunk/3))
	}
	var end sync.WaitGroup
	end.Go(func() { closed(t, w) })
	<-w.end
	close(goOn)
	end.Wait()
	if got := strings.Count(text.String(), "xx\n"); got != more || w.Lost() != 1 {
		t.Errorf("%d lines of %d, %d are lost", got, more, w.Lost())
	}
}

func TestALongLineAndManyShortOnesAreCutAtTheirEnds(t *testing.T) {
	const piece = 4096
	var pieces []int
	var text bytes.Buffer
	w := open(t, writerFunc(func(b []byte) (int, error) {
		if b[len(b)-1] != '\n' {
			t.Errorf("a torn line of %d bytes", len(b))
		}
		pieces = append(pieces, len(b))
		return text.Write(b)
	}), nil)
	long := strings.Repeat("x", 3*piece)
	var want strings.Builder
	for range 3 {
		for range 300 {
			say(io.MultiWriter(w, &want), "0123456789012345678901234567890")
		}
		say(io.MultiWriter(w, &want), long)
	}
	closed(t, w)
	if text.String() != want.String() {
		t.Error("not what was written")
	}
	for _, n := range pieces {
		if n > piece && n != len(long)+1 {
			t.Errorf("%d bytes at once", n)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestLinesAreWrittenTogether(t *testing.T) {
	p := newPlace()
	w := NewWriter(Options{To: p, Lost: func(int64) []byte { return nil }, Linger: time.Hour})
	for n := range 10 {
		say(w, fmt.Sprintf("line %d", n))
	}
	w.Flush(t.Context())
	if lines := p.lines(); p.calls != 1 || len(lines) != 10 {
		t.Errorf("%d calls wrote %d lines", p.calls, len(lines))
	}
	closed(t, w)
}

func TestALineThatMayNotWaitIsWrittenWithTheLinesThatWait(t *testing.T) {
	p := newPlace()
	w := NewWriter(Options{To: p, Lost: func(int64) []byte { return nil }, Linger: time.Hour})
	say(w, "an ordinary line")
	room, err := w.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	say(room, "a change by the API")
	p.await(func(p *place) bool { return strings.Contains(p.text.String(), "a change by the API") })
	for range 2 { // each time anew
		say(w, strings.Repeat("x", many))
		p.await(func(p *place) bool { return p.text.Len() > many })
		p.set(func(p *place) { p.text.Reset() })
	}
	say(w, "the last line")
	closed(t, w)
	if lines := p.lines(); lines[0] != "the last line" {
		t.Errorf("%q", lines)
	}
}
