package proxy

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Parsed, a long body takes several times its length. A flood of them must not take that for each one at a time.
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
