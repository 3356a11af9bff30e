package etcdlock

import (
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestGuardRefusesAnExecutionThatMayNotContinue(t *testing.T) {
	e, a, b := replicas(t)
	held := mustClaim(t, a, withKey(lockFor("w", "one")), 0)
	cb := callbackOf(held.Lock())
	if _, err := b.Guard(within(t, patience), cb, "one", nil); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*idem.Callback)) idem.Callback { c := cb; change(&c); return c }
	for name, c := range map[string]struct {
		cb   idem.Callback
		want error
	}{
		"another key":      {with(func(c *idem.Callback) { c.Key = "another" }), idem.ErrCallbackKey},
		"no key":           {with(func(c *idem.Callback) { c.Key = "" }), idem.ErrCallbackKey},
		"an old token":     {with(func(c *idem.Callback) { c.Token-- }), idem.ErrStaleToken},
		"no token":         {with(func(c *idem.Callback) { c.Token = 0 }), idem.ErrStaleToken},
		"another workflow": {with(func(c *idem.Callback) { c.Workflow = "v" }), idem.ErrNoExecution},
		"another execution": {with(func(c *idem.Callback) {
			c.Execution = lockFor("w", "one").Execution
		}), idem.ErrNoExecution},
	} {
		for _, s := range []*Store{a, b} {
			for _, step := range []string{"", "two"} {
				if found, err := s.Guard(within(t, patience), c.cb, step, nil); !errors.Is(err, c.want) ||
					found != nil {
					t.Errorf("%s: %+v %v", name, found, err)
				}
			}
		}
	}
	mustCancel(t, b, cb.Execution, byOps(false))
	for _, s := range []*Store{a, b} {
		for _, step := range []string{"", "two"} {
			if found, err := s.Guard(within(t, patience), cb, step, nil); !errors.Is(err, idem.ErrCancelled) ||
				found.Status() != idem.CancelRequested {
				t.Errorf("cancelled: %+v %v", found, err)
			}
		}
	}
	forced := mustClaim(t, a, withKey(lockFor("forced", "one")), 0)
	if _, err := b.ForceRelease(within(t, patience), "forced", forced.Lock().Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	lost := mustClaim(t, a, withKey(lockFor("lost", "one")), 0)
	die(t, e, a)
	for name, h := range map[string]*owned.Lock{"forced": forced, "lost": lost} {
		eventually(t, name+" is lost", func() bool {
			_, err := b.Guard(within(t, patience), callbackOf(h.Lock()), "", nil)
			return errors.Is(err, idem.ErrLockLost)
		})
	}
}

func TestAHoldSurvivesTheDeathOfItsProcessAndTheLossOfItsSession(t *testing.T) {
	e := etcdtest.Start(t)
	o := Options{Endpoints: []string{e.Endpoint}}
	events := sessionsOf(&o)
	a, b := openStore(t, o), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	awaitOpened(t, events)
	held := mustHold(t, a, withKey(lockFor("w", "one")), time.Minute)
	if a.own.Has(held.Lock().Execution) {
		t.Error("the process still answers for it from memory")
	}
	endSession(t, e, currentSession(t, a))
	if opened := awaitOpened(t, events); opened.Adopted != 0 {
		t.Errorf("%d locks are adopted", opened.Adopted)
	}
	dead := currentSession(t, a).Name
	die(t, e, a)
	eventually(t, "the death is heard of", func() bool { return !b.view.Sessions.Has(dead) })
	b.sweeper.Everything()
	cb := callbackOf(held.Lock())
	if found, err := b.Heartbeat(within(t, patience), cb, time.Minute); err != nil || !found.Lock.Held ||
		time.Until(found.Lock.HoldUntil) < 50*time.Second {
		t.Fatalf("%+v %v", found, err)
	}
	if found, err := b.Complete(within(t, patience), cb, idem.Final{Status: idem.Success}); err != nil ||
		found.Status() != idem.Success {
		t.Fatalf("%+v %v", found, err)
	}
	count(t, e, b.layout.All(protocol.KindHolds), 0)
}

func TestAHoldThatIsNotRenewedEndsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		maxDuration time.Duration
		cancel      bool
		want        string
	}{
		"nobody renews it":             {0, false, "FAILED hold_expired"},
		"a cancel was asked":           {0, true, "ABORTED ops"},
		"max_duration has been enough": {4 * time.Second, false, "ABORTED policy"},
		"max_duration and a cancel":    {4 * time.Second, true, "ABORTED ops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, b := replicas(t)
			l := withKey(lockFor("w", "one"))
			ttl := 4 * time.Second
			if l.MaxDuration = c.maxDuration; c.maxDuration > 0 {
				ttl = time.Hour
			}
			held := mustHold(t, a, l, ttl)
			id := held.Lock().Execution
			if c.cancel {
				mustCancel(t, b, id, byOps(false))
			}
			eventually(t, "a process reaps it unasked", func() bool {
				st, err := history.Look(within(t, patience), b.pool, keysOf(held))
				return err == nil && st.Lock == nil && st.Record != nil
			})
			r := mustFind(t, b, id).Record
			got := string(r.Status)
			if r.Error != nil {
				got += " " + r.Error.Code
			}
			if r.Abort != nil {
				got += " " + r.Abort.By
			}
			if got != c.want || r.Outcome != idem.Unknown {
				t.Errorf("%s, want %s: %+v", got, c.want, r)
			}
			want := idem.ErrFinished
			if r.Error != nil {
				want = idem.ErrLockExpired
			}
			for what, err := range map[string]error{
				"guard":     second(a.Guard(within(t, patience), callbackOf(held.Lock()), "late", nil)),
				"heartbeat": second(a.Heartbeat(within(t, patience), callbackOf(held.Lock()), 0)),
				"complete": second(a.Complete(within(t, patience), callbackOf(held.Lock()),
					idem.Final{Status: idem.Success})),
			} {
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", what, err, want)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestAnUpstreamMayCompleteBeforeItsAnswerIsRead(t *testing.T) {
	e, _, b := replicas(t)
	told := 0
	a := openStore(t, Options{Endpoints: []string{e.Endpoint}, OnEnded: func(*idem.Record, bool) { told++ }})
	held := mustClaim(t, a, withKey(lockFor("w", "one")), 0)
	if _, err := b.Complete(within(t, patience), callbackOf(held.Lock()),
		idem.Final{Status: idem.Success}); err != nil {
		t.Fatal(err)
	}
	if err := held.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatalf("the hold that comes too late: %v", err)
	}
	if told != 1 {
		t.Errorf("its process was told of its end %d times", told)
	}
	if a.own.Has(held.Lock().Execution) {
		t.Error("the process takes it for its own")
	}
	held = mustClaim(t, a, withKey(lockFor("w", "two")), 0)
	done, err := b.Complete(within(t, patience), callbackOf(held.Lock()),
		idem.Final{Status: idem.Success, Answer: &idem.Answer{Status: 201}})
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := held.Settle(within(t, patience), success("")); err != nil || rec.Revision != done.Record.Revision ||
		rec.Answer.Status != 201 {
		t.Fatalf("the answer that comes too late: %+v %v", rec, err)
	}
}
