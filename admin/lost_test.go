package admin

import (
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/idem"
)

func TestAnEventThatWasRefusedAndDidNotComeAgainIsListed(t *testing.T) {
	f := newFleet(t, nil)
	lost := make(chan idem.LostEvent, 1)
	refuses := f.openWith(t, etcdlock.Options{
		Endpoints: []string{f.etcd.Endpoint}, Holder: "third", OnLost: func(e idem.LostEvent) { lost <- e },
		Follow: func(string, bool) idem.Following {
			return idem.Following{Patience: time.Millisecond, Remembered: time.Hour}
		},
	})
	refuses.NoteArrival(lockOf("stripe/a", "evt_lost").Scope, "stripe", "evt_lost",
		idem.Arrival{At: time.Now(), Decision: idem.DecisionLocked, Status: 409}, time.Hour)
	select {
	case <-lost:
	case <-time.After(patience):
		t.Fatal("it is not lost")
	}
	closed := within(t)
	if err := refuses.Close(closed); err != nil { // so that it is written
		t.Fatal(err)
	}
	const list = "lost=true&since=1h"
	a := f.want(200, "", "GET", "/v1/executions?"+list, readToken1, "")
	if text := string(a.body); !strings.Contains(text, `"eventId":"evt_lost"`) ||
		!strings.Contains(text, `"status":"REFUSED"`) || !strings.Contains(text, `"lostAt":"20`) {
		t.Errorf("%s", text)
	}
	if n, other := f.shows(readToken1, list), f.shows(readToken1, list+"&route=other"); n != 1 || other != 0 {
		t.Errorf("%d, of another route %d", n, other)
	}
	f.want(201, "", "POST", "/v1/seen", opsToken, `{"concern":"lost:stripe","reason":"resent at the sender"}`)
	if n := f.shows(readToken1, list+"&unseen=lost"); n != 0 {
		t.Errorf("%d after a person has looked", n)
	}
	for _, query := range []string{"lost=yes", "lost=true&status=REFUSED", "lost=true&decision=locked",
		"lost=true&parked=true", "lost=true&outcome=unknown"} {
		f.want(400, "bad_request", "GET", "/v1/executions?"+query, readToken1, "")
	}
}
