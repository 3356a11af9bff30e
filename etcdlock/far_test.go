package etcdlock

import (
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
)

// A renewal, a grant or a read takes one round trip: with 700 ms for each, no session ever opened at an etcd that is further away.
func TestAnEtcdThatIsFarAwayIsUsedIfTheRequestTimeoutAllowsIt(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	wire.Delay(400 * time.Millisecond) // each way
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}, RequestTimeout: 6 * time.Second})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	if r := mustSettle(t, held); r.Answer == nil || !r.Answer.Whole {
		t.Errorf("%+v", r)
	}
}
