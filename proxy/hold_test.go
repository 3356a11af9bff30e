package proxy

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/proxy/wire"
)

func TestAnAnswerAsksForAHoldInOneReadableWay(t *testing.T) {
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "1h30m": 90 * time.Minute,
		"90s": 90 * time.Second, "0s": 0, "0": 0} {
		if got, given, err := askedHold([]wire.Field{field("Date", "x"), field("hooklock-HOLD", text)}); got != want ||
			!given || err != nil {
			t.Errorf("%q: %v, %v, %v", text, got, given, err)
		}
	}
	for _, text := range []string{"", "true", "30", "-1s", "30 m", "1d", "999999999999h", "soon"} {
		if _, given, err := askedHold([]wire.Field{field(headerHold, text)}); err == nil || !given {
			t.Errorf("%q was read", text)
		}
	}
	if _, _, err := askedHold([]wire.Field{field(headerHold, "30m"), field(headerHold, "1h")}); err == nil {
		t.Error("two were read")
	}
	if got, given, err := askedHold([]wire.Field{field("Hooklock-Holder", "30m")}); got != 0 || given || err != nil {
		t.Errorf("nobody asked: %v, %v, %v", got, given, err)
	}
}

func field(name, value string) wire.Field {
	return wire.Field{Name: []byte(name), Value: []byte(value)}
}

func FuzzAskedHold(f *testing.F) {
	for _, text := range []string{"30m", "", "-0s", "1e3s", "\xff", "9223372036854775807ns"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if asked, given, err := askedHold([]wire.Field{field(headerHold, text)}); !given || asked < 0 ||
			err != nil && asked != 0 {
			t.Errorf("%q: %v, %v, %v", text, asked, given, err)
		}
	})
}

// holds is a route on which 202 means that the work goes on.
func holds(p *idem.Policy) {
	p.HoldOn.Add(202, 202)
	p.HoldTTL = 55 * time.Second
}

// retryAfter is what a refusal says of when to come again.
func retryAfter(t *testing.T, a answer) int {
	t.Helper()
	var problem struct{ RetryAfter int }
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	return problem.RetryAfter
}

func TestAHeldExecutionKeepsItsLockAndItsEventAtEveryReplica(t *testing.T) {
	for name, how := range map[string]string{"by its status": "202", "by its header": "hold 55s",
		"by a header that cannot be read": "hold soon"} {
		t.Run(name, func(t *testing.T) {
			etcd, up := etcdtest.Start(t), newService(t)
			a, b := newReplica(t, etcd, up, holds), newReplica(t, etcd, up, holds)
			up.reply <- how
			first := await(t, a.send(t.Context(), "w", "1"))
			if first.decision != "executed" || first.body != "answer to event 1" ||
				first.header.Get("Hooklock-Recorded") != "" || first.header.Get("Hooklock-Hold") != "" {
				t.Fatalf("got %+v", first)
			}
			for _, r := range []*replica{a, b} {
				for event, decision := range map[string]string{"1": "in_flight", "2": "locked"} {
					got := await(t, r.send(t.Context(), "w", event))
					if got.status != 409 || got.decision != decision ||
						got.header.Get("Hooklock-Execution") != first.header.Get("Hooklock-Execution") {
						t.Errorf("event %s: %+v", event, got)
					}
					if s := retryAfter(t, got); s < 20 || s > 55 {
						t.Errorf("event %s comes again after %d s of 55", event, s)
					}
				}
			}
			if runs, _ := up.count(); runs != 1 || !a.events.heard(EventHeld) || a.events.heard(EventReleased) {
				t.Errorf("%d runs, events %v", runs, a.events.names)
			}
		})
	}
}

func TestAHoldThatCannotBeReadIsLoggedOnce(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { holds(p); p.Keep = idem.StatusSet{} })
	var lines bytes.Buffer
	r.handler.options.Log = slog.New(slog.NewTextHandler(&lines, nil))
	up.reply <- "hold soon"
	decided(t, r.send(t.Context(), "w", "1"), "executed")
	if n := strings.Count(lines.String(), "msg=hold.unreadable"); n != 1 {
		t.Errorf("%d lines:\n%s", n, lines.String())
	}
}

func TestAnUpstreamThatSaysZeroIsDoneWhateverItsStatus(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { holds(p); p.HoldOn.Add(200, 200) })
	up.reply <- "hold 0s"
	await(t, r.send(t.Context(), "w", "1"))
	decided(t, r.send(t.Context(), "w", "1"), "replayed")
}

func TestAHoldOutlivesTheProcessThatTookIt(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	b := newReplica(t, etcd, up, holds)
	t.Run("the process", func(t *testing.T) {
		a := newReplica(t, etcd, up, holds)
		up.reply <- "202"
		await(t, a.send(t.Context(), "w", "1"))
	})
	decided(t, b.send(t.Context(), "w", "2"), "locked")
}

func TestAHoldThatIsNotRenewedFreesTheLock(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { p.Strategy = idem.Wait; p.OnUnknown = idem.UnknownBlock })
	up.reply <- "hold 2s"
	first := await(t, r.send(t.Context(), "w", "1"))
	up.reply <- ""
	decided(t, r.send(t.Context(), "w", "2"), "executed")
	got := await(t, r.send(t.Context(), "w", "1"))
	if got.decision != "unknown" || got.header.Get("Hooklock-Execution") != first.header.Get("Hooklock-Execution") {
		t.Errorf("the event that was held: %+v", got)
	}
}

func TestAttachedDuplicatesOfAHeldEventAreRefusedInTheEnd(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) {
		holds(p)
		attaches(p)
		p.AttachTimeout = 100 * time.Millisecond
	})
	up.reply <- "202"
	await(t, r.send(t.Context(), "w", "1"))
	if got := await(t, r.send(t.Context(), "w", "1")); got.status != 409 || got.decision != "in_flight" {
		t.Errorf("got %+v", got)
	}
}

func TestWithoutLockTheEventAloneIsHeld(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { holds(p); p.Strategy = idem.NoLock })
	up.reply <- "202"
	await(t, r.send(t.Context(), "w", "1"))
	decided(t, r.send(t.Context(), "w", "1"), "in_flight")
	up.reply <- ""
	decided(t, r.send(t.Context(), "w", "2"), "executed")
}

func TestAHoldThatCannotBeWrittenSaysSoAndKeepsTheLockClosed(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	link := etcdtest.NewWire(t, etcd.Endpoint)
	a, b := newReplicaAt(t, link.Endpoint, up, holds), newReplica(t, etcd, up, holds)
	first := a.send(t.Context(), "w", "1")
	await(t, up.begun)
	link.Blackhole(true)
	up.reply <- "202"
	if got := await(t, first); got.status != 202 || got.decision != "executed" ||
		got.header.Get("Hooklock-Recorded") != "false" {
		t.Errorf("got %+v", got)
	}
	decided(t, b.send(t.Context(), "w", "2"), "locked")
	link.Blackhole(false)
	holdsInEtcd(t, etcd, 1)
	if got := await(t, b.send(t.Context(), "w", "1")); got.decision != "in_flight" || retryAfter(t, got) < 10 {
		t.Errorf("got %+v", got)
	}
}

// holdsInEtcd waits until there are so many.
func holdsInEtcd(t *testing.T, etcd *etcdtest.Etcd, n int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got, err := etcd.Count(t.Context(), "/hooklock/v1/holds/")
		if err != nil {
			t.Fatal(err)
		}
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d holds, want %d", got, n)
		}
	}
}

func TestADeliveryThatWaitedInVainBehindAHoldLearnsWhenItRunsOut(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { holds(p); waits(p); p.WaitTimeout = 100 * time.Millisecond })
	up.reply <- "202"
	await(t, r.send(t.Context(), "w", "1"))
	if got := await(t, r.send(t.Context(), "w", "2")); got.decision != "wait_timeout" || retryAfter(t, got) < 20 {
		t.Errorf("got %+v", got)
	}
}
