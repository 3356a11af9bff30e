package requests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/proxy/kept"
)

const week = 7 * 24 * time.Hour

var noon = time.Date(2026, 11, 28, 12, 0, 30, 0, time.UTC)

// archiveRig is an archive of one process, whose clock and limits a test sets.
type archiveRig struct {
	*Archive
	now    time.Time
	events int
	bytes  int64
	errs   []error
	mu     sync.Mutex
}

func newArchive(t *testing.T, store Store, kind Kind) *archiveRig {
	t.Helper()
	r := &archiveRig{now: noon, events: 1000, bytes: 1 << 20}
	keys, err := ParseKeys("k1 " + strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	r.Archive = NewArchive(NewKeeper(1<<10, kind, store, keys), ArchiveOptions{
		Limits: func() (int, int64) { return r.events, r.bytes },
		OnError: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.errs = append(r.errs, err)
		},
		Now: func() time.Time { return r.now },
	})
	return r
}

// run runs the writers until the returned function, which waits until all is written.
func (r *archiveRig) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx, t.Context()) }()
	return func() { cancel(); <-done }
}

func requestOf(text string) *kept.Request {
	return &kept.Request{Head: []byte("POST /hooks HTTP/1.1\r\nHost: a\r\n\r\n"), Body: []byte(text), Arrived: noon}
}

func place(n byte, at time.Time) Place { return Place{execution(n), at} }

// eachStore runs a test on a folder and on a bucket.
func eachStore(t *testing.T, test func(t *testing.T, open func() *archiveRig)) {
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir() + "/requests"
		test(t, func() *archiveRig { return newArchive(t, openDir(t, dir), InDir) })
	})
	t.Run("S3", func(t *testing.T) {
		address := s3Server(t)
		test(t, func() *archiveRig { return newArchive(t, openS3(t, s3Options(address)), InS3) })
	})
}

func TestARequestThatIsWrittenAfterAnotherProcessHasErasedItGoes(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		writes, erases := open(), open()
		writes.Put(place(1, noon), week, requestOf("erased"))
		writes.Put(place(2, noon), week, requestOf("kept"))
		if err := erases.Delete(t.Context(), place(1, noon)); err != nil {
			t.Fatal(err)
		}
		writes.Forget(execution(1))
		writes.run(t)()
		for n, want := range map[byte]bool{1: false, 2: true} {
			if there, err := erases.Has(t.Context(), place(n, noon)); there != want || err != nil {
				t.Errorf("%d: %v %v", n, there, err)
			}
		}
	})
}

func TestAtItsEndAnArchiveAsksWhatWasForgottenMeanwhile(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		writes, erases := open(), open()
		writes.o.Forgotten = func(ctx context.Context) ([]idem.ExecutionID, error) {
			if there, err := erases.Has(ctx, place(1, noon)); !there || err != nil {
				t.Errorf("it asks before it has written all: %v %v", there, err)
			}
			return []idem.ExecutionID{execution(3), execution(1)}, nil
		}
		writes.Put(place(1, noon), week, requestOf("erased, and nothing was heard of it"))
		writes.Put(place(2, noon), week, requestOf("kept"))
		writes.run(t)()
		for n, want := range map[byte]bool{1: false, 2: true} {
			if there, err := erases.Has(t.Context(), place(n, noon)); there != want || err != nil {
				t.Errorf("%d: %v %v", n, there, err)
			}
		}
	})
}

func TestAnArchivedRequestIsFoundByItsExecutionInAnyProcess(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		one, other := open(), open()
		stop := one.run(t)
		one.Put(place(1, noon), week, requestOf("a"))
		one.Put(place(2, noon), 24*time.Hour, requestOf("b"))
		stop()
		for n, want := range map[byte]string{1: "a", 2: "b"} {
			// the clocks of processes differ
			for _, at := range []time.Time{noon, noon.Add(time.Minute), noon.Add(-time.Minute)} {
				r, err := other.Fetch(t.Context(), place(n, at))
				if err != nil || string(r.Body) != want {
					t.Fatalf("%d: %v %v", n, r, err)
				}
				if is, err := other.Has(t.Context(), place(n, at)); !is || err != nil {
					t.Fatalf("%d: %v %v", n, is, err)
				}
			}
		}
		for _, at := range []Place{place(3, noon), place(1, noon.Add(2*time.Minute))} {
			if _, err := other.Fetch(t.Context(), at); !errors.Is(err, ErrNotKept) {
				t.Errorf("%v: %v", at, err)
			}
			if is, err := other.Has(t.Context(), at); is || err != nil {
				t.Errorf("%v: %v %v", at, is, err)
			}
		}
		if c := one.Counts(); c.Written != 2 || c.Events != 2 || c.Bytes == 0 || c.Dropped != 0 || len(one.errs) > 0 {
			t.Errorf("%+v %v", c, one.errs)
		}
	})
}

func TestADeletedRequestIsGoneAlsoIfItWaitsToBeWritten(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		one, other := open(), open()
		one.Put(place(1, noon), week, requestOf("a"))
		one.Put(place(2, noon), week, requestOf("b"))
		if is, err := one.Has(t.Context(), place(1, noon)); !is || err != nil {
			t.Fatalf("it is not there before it is written: %v", err)
		}
		if err := one.Delete(t.Context(), place(1, noon)); err != nil {
			t.Fatal(err)
		}
		one.run(t)()
		if err := other.Delete(t.Context(), place(2, noon)); err != nil {
			t.Fatal(err)
		}
		if err := other.Delete(t.Context(), place(3, noon)); err != nil {
			t.Fatal(err)
		}
		for _, n := range []byte{1, 2} {
			if _, err := other.Fetch(t.Context(), place(n, noon)); !errors.Is(err, ErrNotKept) {
				t.Errorf("%d: %v", n, err)
			}
		}
	})
}

func TestADroppedRequestIsDeletedBehind(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		before := open()
		stop := before.run(t)
		before.Put(place(1, noon), week, requestOf("written before"))
		before.Put(place(2, noon), week, requestOf("stays"))
		stop()
		a := open()
		a.Put(place(3, noon), week, requestOf("waits to be written"))
		a.Drop(place(1, noon))
		a.Drop(place(3, noon))
		a.Drop(place(4, noon)) // there is none
		a.run(t)()
		for n, want := range map[byte]bool{1: false, 2: true, 3: false} {
			if has, err := a.Has(t.Context(), place(n, noon)); err != nil || has != want {
				t.Errorf("that of %d is there: %v, %v", n, has, err)
			}
		}
		if len(a.errs) != 0 {
			t.Errorf("told %v", a.errs)
		}
	})
}

func TestOldRequestsGoByTheMinuteAndOthersStay(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		one, other := open(), open()
		for n := range byte(4) {
			one.Put(place(n, noon.Add(time.Duration(n)*time.Minute)), time.Hour, requestOf("a"))
			one.Put(place(10+n, noon.Add(time.Duration(n)*time.Minute)), week, requestOf("b"))
		}
		one.run(t)()
		other.now = noon.Add(time.Hour + 2*time.Minute)
		if err := other.Tend(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range byte(4) {
			at := noon.Add(time.Duration(n) * time.Minute)
			if is, err := other.Has(t.Context(), place(n, at)); is != (n >= 2) || err != nil {
				t.Errorf("%d for an hour: %v %v", n, is, err)
			}
			if is, err := other.Has(t.Context(), place(10+n, at)); !is || err != nil {
				t.Errorf("%d for a week: %v %v", n, is, err)
			}
		}
		if c := other.Counts(); c.Events != 6 || c.Removed != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestTheOldestRequestsGoBeyondTheLimits(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		for what, limit := range map[string]func(*archiveRig){
			"events": func(r *archiveRig) { r.events = 4 },
			"bytes":  func(r *archiveRig) { r.bytes = 1100 },
		} {
			t.Run(what, func(t *testing.T) {
				one, other := open(), open()
				for n := range byte(6) {
					one.Put(place(n, noon.Add(time.Duration(n/2)*time.Minute)), week,
						requestOf(strings.Repeat("a", 100)))
				}
				one.run(t)()
				limit(other)
				if err := other.Tend(t.Context()); err != nil {
					t.Fatal(err)
				}
				for n := range byte(6) {
					if is, err := other.Has(t.Context(),
						place(n, noon.Add(time.Duration(n/2)*time.Minute))); is != (n >= 2) || err != nil {
						t.Errorf("%d: %v %v", n, is, err)
					}
				}
				if c := other.Counts(); c.Events != 4 || c.Removed != 2 {
					t.Errorf("%+v", c)
				}
				other.events = 0
				if err := other.Tend(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c := other.Counts(); c.Events != 2 { // never the newest minute
					t.Errorf("%+v", c)
				}
				other.now = noon.Add(2 * week) // for the next
				if err := other.Tend(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c := other.Counts(); c.Events != 0 || c.Bytes != 0 {
					t.Errorf("%+v", c)
				}
			})
		}
	})
}

func TestWhatTheQueueHasNoRoomForIsDroppedAndCounted(t *testing.T) {
	one := newArchive(t, openDir(t, t.TempDir()+"/requests"), InDir)
	one.events = 1 << 30
	for n := range maxUnwritten + 3 {
		id := idem.NewExecutionID("w", idem.MakeKey(uint64(n), [16]byte{}), [4]byte{})
		one.Put(Place{id, noon}, week, requestOf("a"))
	}
	if c := one.Counts(); c.Dropped != 3 || len(one.errs) != 3 {
		t.Errorf("%+v", c)
	}
	big := newArchive(t, openDir(t, t.TempDir()+"/requests"), InDir)
	big.bytes = 1 << 30
	for n := range byte(5) {
		big.Put(place(n, noon), week, requestOf(strings.Repeat("a", maxUnwrittenBytes/4)))
	}
	if c := big.Counts(); c.Dropped != 2 {
		t.Errorf("%+v", c)
	}
	few := newArchive(t, openDir(t, t.TempDir()+"/requests"), InDir)
	few.events = 4
	for n := range byte(8) {
		few.Put(place(n, noon), week, requestOf("a"))
	}
	if c := few.Counts(); c.Dropped != 2 { // a quarter, and one, more than the limit
		t.Errorf("%+v", c)
	}
}

// fileOf returns the name of the one file of noon's shelf.
func fileOf(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "kept", "604800", "202611281200", "*"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

func TestAFrameThatACrashCutShortIsNotKeptAndThoseBeforeItAre(t *testing.T) {
	dir := t.TempDir() + "/requests"
	one := newArchive(t, openDir(t, dir), InDir)
	one.keeper.SetKeys(nil)
	one.Put(place(1, noon), week, requestOf("a"))
	one.Put(place(2, noon), week, requestOf(strings.Repeat("a", 9000)))
	one.Put(place(3, noon), week, requestOf("c"))
	one.run(t)()
	name := fileOf(t, dir)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	hole, end := slices.Clone(whole), slices.Clone(whole)
	clear(hole[4096:8192])
	clear(end[4096:])
	for what, c := range map[string]struct {
		b    []byte
		kept []byte
	}{
		"empty": {nil, nil}, "short": {whole[:4096], []byte{1}},
		"a head cut short": {whole[:len(whole)-20], []byte{1, 2}},
		"a hole":           {hole, []byte{1, 3}}, "an end of zeros": {end, []byte{1}},
	} {
		if err := os.WriteFile(name, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		other := newArchive(t, openDir(t, dir), InDir)
		other.keeper.SetKeys(nil)
		for n := range byte(4) {
			_, err := other.Fetch(t.Context(), place(n, noon))
			if is := slices.Contains(c.kept, n); is != (err == nil) || !is && !errors.Is(err, ErrNotKept) {
				t.Errorf("%s: %d: %v", what, n, err)
			}
		}
	}
}

func TestManyRequestsOfAMinuteAreFoundWhileTheyAreAddedAndErasedByOthers(t *testing.T) {
	eachStore(t, func(t *testing.T, open func() *archiveRig) {
		one, other, reader := open(), open(), open()
		at := func(n int) Place {
			return Place{idem.NewExecutionID("w", idem.MakeKey(uint64(n), [16]byte{}), [4]byte{}), noon}
		}
		const n = 300 // more than a batch
		for round := range 2 {
			stop, stopOther := one.run(t), other.run(t)
			for i := range n {
				one.Put(at(round*2*n+2*i), week, requestOf(fmt.Sprint(round*2*n+2*i)))
				other.Put(at(round*2*n+2*i+1), week, requestOf(fmt.Sprint(round*2*n+2*i+1)))
			}
			stop()
			stopOther()
			for i := range 2 * n * (round + 1) {
				r, err := reader.Fetch(t.Context(), at(i))
				erased := round == 1 && i < 10
				if erased && !errors.Is(err, ErrNotKept) || !erased && (err != nil || string(r.Body) != fmt.Sprint(i)) {
					t.Fatalf("%d: %v, %v", i, r, err)
				}
			}
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					by := []*archiveRig{one, other, reader}[i%3]
					if err := by.Delete(t.Context(), at(i)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for i := range 12 {
				if is, err := reader.Has(t.Context(), at(i)); is != (i >= 10) || err != nil {
					t.Errorf("%d: %v %v", i, is, err)
				}
			}
		}
	})
}

// TestEachRequestOfAFileIsFound, wherever the pieces end in which its heads are read.
func TestEachRequestOfAFileIsFound(t *testing.T) {
	dir := t.TempDir() + "/requests"
	one := newArchive(t, openDir(t, dir), InDir)
	one.bytes = 1 << 30
	const n = 250
	for i := range byte(n) {
		one.Put(place(i, noon), week, requestOf(strings.Repeat("b", 700*int(i))))
	}
	one.run(t)()
	other := newArchive(t, openDir(t, dir), InDir)
	for i := range byte(n) {
		if _, err := other.Fetch(t.Context(), place(i, noon)); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestOfAnErasedRequestNothingIsOnTheDisk(t *testing.T) {
	dir := t.TempDir() + "/requests"
	one := newArchive(t, openDir(t, dir), InDir)
	one.keeper.SetKeys(nil)
	one.Put(place(1, noon), week, requestOf("of a customer"))
	one.Put(place(2, noon), week, requestOf("of another"))
	one.run(t)()
	if err := one.Delete(t.Context(), place(1, noon)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fileOf(t, dir))
	if err != nil || strings.Contains(string(b), "of a customer") ||
		strings.Contains(string(b), string(execution(1))) ||
		!strings.Contains(string(b), "of another") {
		t.Errorf("%q %v", b, err)
	}
}

func TestTheRequestOfAnExecutionIsKeptForAnotherOne(t *testing.T) {
	store := openDir(t, t.TempDir()+"/requests")
	one := newArchive(t, store, InDir)
	for n, body := range map[byte]string{1: "short", 2: strings.Repeat("long", 1000)} {
		one.Put(place(n, noon), week, requestOf(body))
		_, value, err := one.Rekeep(t.Context(), place(n, noon), execution(10+n))
		if err != nil {
			t.Fatal(err)
		}
		r, err := one.keeper.Fetch(t.Context(), execution(10+n), value)
		if err != nil || string(r.Body) != body {
			t.Errorf("%v %v", r, err)
		}
		if is, err := one.Has(t.Context(), place(n, noon)); !is || err != nil {
			t.Errorf("it is gone from the archive: %v", err)
		}
	}
	if _, _, err := one.Rekeep(t.Context(), place(3, noon), execution(13)); !errors.Is(err, ErrNotKept) {
		t.Errorf("%v", err)
	}
	one.run(t)()
	for id, err := range store.List(t.Context()) { // the sweeper sees parked requests alone
		if err != nil || id != execution(12) {
			t.Errorf("%v %v", id, err)
		}
	}
}

func TestAnArchiveOfAHangingDiskBlocksNoDeliveryAndNoStop(t *testing.T) {
	d := openDir(t, t.TempDir()+"/requests")
	for range maxAsking { // as many calls as run at a time
		d.asking <- struct{}{}
	}
	defer func() {
		for range maxAsking {
			<-d.asking
		}
	}()
	one := newArchive(t, d, InDir)
	one.Put(place(1, noon), week, requestOf("a"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	rest, over := context.WithCancel(t.Context())
	over()
	one.Run(ended, rest)
	if c := one.Counts(); c.Dropped != 1 {
		t.Errorf("%+v", c)
	}
}

func FuzzFrames(f *testing.F) {
	whole := append(encodeFrame(execution(1), []byte("one")), encodeFrame(execution(2), []byte("two"))...)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte(frameMagic + "\x00\x00\x00\x01aaaa\x00"))
	dir := f.TempDir() + "/requests"
	d, err := OpenDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = d.Close(context.Background()) })
	s := shelfOf(week, noon)
	if err := os.MkdirAll(filepath.Join(dir, s.folderPath()), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(dir, s.folderPath(), "a.0")
		if err := os.WriteFile(name, append(bytes.Clone(whole), b...), 0o600); err != nil {
			t.Fatal(err)
		}
		area := newDirArea(d, "a")
		for n, want := range map[byte]string{1: "one", 2: "two"} {
			if bytes.Contains(b, []byte(execution(n))) {
				continue // the last one of an execution is its request
			}
			if sealed, err := area.readFrame(t.Context(), s, execution(n)); err != nil || string(sealed) != want {
				t.Errorf("%d: %q %v", n, sealed, err)
			}
		}
		if sealed, err := area.readFrame(t.Context(), s, execution(3)); err == nil &&
			!bytes.Contains(b, encodeFrame(execution(3), sealed)) {
			t.Errorf("%q", sealed)
		}
	})
}

func FuzzCountIn(f *testing.F) {
	f.Add("604800.202611281200.abc.3.4000")
	f.Add("1.2.3.4.5")
	f.Fuzz(func(t *testing.T, name string) {
		s, process, n, ok := countIn(name)
		if !ok {
			return
		}
		again, process2, n2, ok := countIn(s.countName(process, n))
		if !ok || again != s || process2 != process || n2 != n {
			t.Errorf("%q", name)
		}
	})
}
