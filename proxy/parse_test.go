package proxy

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"hooklock/idem/naming"
)

// Parsed, a long body takes several times its length. A flood of them must not take that for each
// one at a time.
func TestNoMoreLongBodiesAreParsedAtATimeThanThereAreProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(HandlerOptions{Base: t.Context()}, &Rules{})
		parse := func(length int) (end func()) {
			d := h.pool.get(h)
			d.req.body = make([]byte, length)
			return d.awaitParser()
		}
		long := keepBuffer + 1
		var ends []func()
		for range runtime.GOMAXPROCS(0) {
			ends = append(ends, parse(long))
		}
		var next func()
		go func() { next = parse(long) }()
		synctest.Wait()
		if next != nil {
			t.Fatal("one more is parsed than there are processors")
		}
		parse(keepBuffer)() // a short one does not wait
		ends[0]()
		synctest.Wait()
		if next == nil {
			t.Fatal("the next one still waits")
		}
	})
}

// A delivery may wait for an hour. What its long body was parsed into is none of limits.memory, so
// it must not wait with it.
func TestNothingThatALongBodyWasParsedIntoIsLeftBehindTheParsing(t *testing.T) {
	const length = 8 << 20
	l, err := naming.CompileLookup("form.a")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(HandlerOptions{Base: t.Context()}, &Rules{})
	d := h.pool.get(h)
	d.req.body = []byte("a=%41" + strings.Repeat("a", length))
	d.req.msg.Fields = []naming.Field{{Name: []byte("Content-Type"),
		Value: []byte("application/x-www-form-urlencoded")}}
	d.req.msg.Body = d.req.body
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	end := d.awaitParser()
	if _, r := l.Read(&d.req.msg); r != naming.ReadFound {
		t.Fatalf("reading %d", r)
	}
	if grown := inUse() - before; grown < length/2 {
		t.Fatalf("parsed, the body takes %d bytes: nothing is tried here", grown)
	}
	end()
	if left := inUse() - before; left > length/2 {
		t.Errorf("%d bytes are left", left)
	}
	runtime.KeepAlive(d)
}
