package proxy

import (
	"runtime"
	"testing"
	"time"
	"weak"
)

// A timer that runs is a root of the collector: what it can reach stays in memory until it fires,
// after the budget of bodies has its bytes back.
func TestALargeDeliveryCanBeCollectedAlthoughTheTimeOfItsCallIsNotOver(t *testing.T) {
	h := NewHandler(HandlerOptions{Base: t.Context()}, &Rules{})
	ended := func() weak.Pointer[delivery] {
		d := h.pool.get(h)
		d.req.body = make([]byte, 2*keepBuffer)
		d.call.beginAt(time.Now(), time.Hour)
		d.call.endCall()
		h.pool.put(d)
		return weak.Make(d)
	}()
	runtime.GC()
	if ended.Value() != nil {
		t.Error("it is kept by the timer of its call")
	}
}
