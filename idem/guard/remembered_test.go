package guard

import (
	"context"
	"reflect"
	"testing"
	"time"

	"hooklock/idem"
)

func guardOf(t *testing.T, l idem.Ledger, clock *time.Time) *Guard {
	t.Helper()
	return New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time { return *clock }})
}

// What a process remembers answers as the ledger would, or not at all.
func TestWhatIsRememberedIsDecidedAsTheLedgerSaysIt(t *testing.T) {
	signed := func(who string) func(idem.ExecutionID) string { return func(idem.ExecutionID) string { return who } }
	first := func(change func(*idem.Record)) *idem.Record {
		r := cached(1)
		r.Fingerprint, r.Credentials, r.Attempt, r.Retention = idem.Fingerprint{1}, "alice", 3, time.Hour
		if change != nil {
			change(r)
		}
		return r
	}
	for name, c := range map[string]struct {
		record  *idem.Record
		policy  func(*idem.Policy)
		request func(*idem.Request)
		want    idem.Decision
		status  bool
		asked   bool // the ledger is asked each time
	}{
		"a copy": {first(nil), nil, nil, idem.DecisionReplayed, false, false},
		"another payload": {first(nil), nil, func(r *idem.Request) {
			r.Fingerprint = idem.Fingerprint{2}
		}, idem.DecisionMismatch, false, false},
		"other credentials": {first(nil), nil, func(r *idem.Request) {
			r.Credentials = signed("bob")
		}, idem.DecisionReplayed, true, false},
		"an unknown outcome, block": {first(unknownOutcome), func(p *idem.Policy) {
			p.OnUnknown = idem.UnknownBlock
		}, nil, idem.DecisionUnknown, false, false},
		"cancelled for good": {first(finalAbort), func(p *idem.Policy) {
			p.OnUnknown = idem.UnknownBlock
		}, nil, idem.DecisionAborted, false, true},
		"cancelled, unknown, for good": {first(func(r *idem.Record) {
			finalAbort(r)
			r.Outcome = idem.Unknown
		}), func(p *idem.Policy) { p.OnUnknown = idem.UnknownBlock }, nil, idem.DecisionAborted, false, true},
		"failed as often as it may": {first(notKept), threeAttempts, nil, idem.DecisionExhausted, false, false},
		"so, and may be run again here": {first(func(r *idem.Record) {
			notKept(r)
			r.RequestKept = true
		}), threeAttempts, nil, idem.DecisionExhausted, false, true},
		"unknown, and the same": {first(func(r *idem.Record) {
			unknownOutcome(r)
			r.RequestKept = true
		}), func(p *idem.Policy) { p.OnUnknown = idem.UnknownBlock }, nil, idem.DecisionUnknown, false, true},
		"without idempotency": {first(nil), func(p *idem.Policy) {
			p.Idempotency = false
		}, nil, idem.DecisionReplayed, false, true},
		"a trace, so that it is found": {first(func(r *idem.Record) {
			r.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		}), nil, nil, idem.DecisionReplayed, false, false},
		"an answer whose body was long": {first(func(r *idem.Record) {
			r.Answer = &idem.Answer{Status: 204}
		}), nil, nil, idem.DecisionReplayed, false, false},
	} {
		clock, claims := noon, 0
		l := &asked{seen: idem.Obstacle{Record: c.record, RecordRevision: 7}, claims: &claims}
		g := guardOf(t, l, &clock)
		var verdicts []idem.Verdict
		for range 2 {
			p := testPolicy()
			if c.policy != nil {
				c.policy(p)
			}
			r := &idem.Request{Scope: c.record.Scope, Fingerprint: idem.Fingerprint{1}, Policy: p,
				Credentials: signed("alice")}
			if c.request != nil {
				c.request(r)
			}
			verdicts = append(verdicts, g.Admit(t.Context(), r).Verdict)
		}
		for i, v := range verdicts {
			if v.Decision != c.want || v.StatusOnly != c.status || v.Holder != c.record.Execution ||
				v.HolderTrace != c.record.TraceParent {
				t.Errorf("%s, delivery %d: %+v", name, i+1, v)
			}
			if r := v.Record; r != nil && (r.Execution != c.record.Execution || !reflect.DeepEqual(r.Answer,
				c.record.Answer) || r.Attempt != 3 || r.Scope.Key != c.record.Scope.Key ||
				r.Outcome != c.record.Outcome) {
				t.Errorf("%s, delivery %d: %+v", name, i+1, *r)
			}
		}
		if want := map[bool]int{true: 2, false: 1}[c.asked]; claims != want {
			t.Errorf("%s: the ledger was asked %d times, want %d", name, claims, want)
		}
	}
}

func threeAttempts(p *idem.Policy) { p.Attempts = 3 }

func notKept(r *idem.Record) {
	r.Status, r.Remembered, r.Answer = idem.Failed, false, &idem.Answer{Status: 500}
}

// asked counts how often a delivery came as far as the ledger.
type asked struct {
	quiet
	seen   idem.Obstacle
	claims *int
}

func (a *asked) Claim(context.Context, idem.Lock, int64) (idem.RunningLock, *idem.Obstacle, error) {
	*a.claims++
	seen := a.seen
	return nil, &seen, nil
}
func (a *asked) CountDuplicate(idem.ExecutionID, time.Duration) {}

func TestAnOutcomeIsRememberedForItsRetentionAndOneThatWasReadForItsSlack(t *testing.T) {
	for name, c := range map[string]struct {
		admit bool // this process ran it, else it read the record
		life  time.Duration
	}{"ran": {true, time.Hour}, "read": {false, idem.ExtraRetention(time.Hour)}} {
		clock, claims := noon, 0
		rec := cached(1)
		rec.Retention = time.Hour
		var l idem.Ledger = &asked{seen: idem.Obstacle{Record: rec}, claims: &claims}
		if c.admit {
			l = &oneLock{record: rec}
		}
		g := guardOf(t, l, &clock)
		a := g.Admit(t.Context(), &idem.Request{Scope: rec.Scope, Policy: testPolicy()})
		if c.admit {
			if a.Execution == nil {
				t.Fatalf("%+v", a)
			}
			a.Execution.End(Tried{Answer: &idem.Answer{Status: 200, Whole: true}})
		}
		if g.cache.get(rec.Scope.Key, noon.Add(c.life-1)) == nil {
			t.Errorf("%s: forgotten too early", name)
		}
		if g.cache.get(rec.Scope.Key, noon.Add(c.life)) != nil {
			t.Errorf("%s: remembered for too long", name)
		}
	}
}

func TestWhatIsNoKeyIsNeitherRememberedNorFound(t *testing.T) {
	good := cached(0).Scope.Key
	zeros := idem.Key("0000000000000000-00000000000000000000000000000000")
	for _, key := range []idem.Key{"", "x", good + "0", good[:48], zeros[:16] + "+" + zeros[17:], "g" + good[1:],
		good[:48] + "g", good[:17] + "g" + good[18:]} {
		c := NewCache(0)
		rec := cached(0)
		rec.Scope.Key = key
		c.add(rec, c.beginRead(noon), time.Hour)
		if len(c.byHalf) != 0 || c.get(key, noon) != nil {
			t.Errorf("%q is remembered", key)
		}
		rec.Scope.Key = zeros
		c.add(rec, c.beginRead(noon), time.Hour)
		if c.get(key, noon) != nil || c.get(zeros, noon) == nil {
			t.Errorf("%q is found", key)
		}
	}
}

func TestWhatIsHeavierThanTheCacheDoesNotPushTheOthersOut(t *testing.T) {
	c := NewCache(rememberedSize + 4*blockSize)
	c.add(cached(0), c.beginRead(noon), time.Hour)
	heavy := cached(1)
	heavy.Answer = &idem.Answer{Whole: true,
		Body: make([]byte, (c.max-rememberedSize)/blockSize*blockText-len(encodeAnswer("",
			&idem.Answer{Whole: true}))+1)}
	c.add(heavy, c.beginRead(noon), time.Hour)
	if c.get(heavy.Scope.Key, noon) != nil || c.get(cached(0).Scope.Key, noon) == nil {
		t.Error("it is remembered, or it has pushed out another")
	}
	heavy.Answer.Body = heavy.Answer.Body[1:] // just as heavy as the cache
	c.add(heavy, c.beginRead(noon), time.Hour)
	if c.get(heavy.Scope.Key, noon) == nil || c.bytes != c.max {
		t.Error("it is not remembered though it fits")
	}
	bare := cached(0)
	bare.Answer = nil // an unknown outcome has none
	c.add(bare, c.beginRead(noon), time.Hour)
	if c.get(bare.Scope.Key, noon) == nil {
		t.Error("what has no answer is not remembered")
	}
}

func TestARecordIsRememberedOnce(t *testing.T) {
	c := NewCache(0)
	for range 3 {
		c.add(cached(0), c.beginRead(noon), time.Hour)
	}
	if len(c.byHalf) != 1 || c.bytes != cachedSize {
		t.Errorf("%d records, %d bytes", len(c.byHalf), c.bytes)
	}
	c.Forget("exec_nothing")
	c.Forget(cached(0).Execution)
	if c.bytes != 0 || c.arena.recordAt(0).next != 0 || c.arena.recordAt(0).prev != 0 {
		t.Errorf("%d bytes of nothing", c.bytes)
	}
	c.add(cached(1), c.beginRead(noon), time.Hour)
	c.Reset()
	if c.arena.recordAt(0).next != 0 || c.arena.recordAt(0).prev != 0 {
		t.Error("a cache that was reset still holds on to a record")
	}
}

func TestTimesOfTheCacheCountFromItsFirstMoment(t *testing.T) {
	c := NewCache(0)
	c.add(cached(0), c.beginRead(noon), time.Hour)
	c.add(cached(1), c.beginRead(noon.Add(30*time.Minute)), time.Hour)
	for i, life := range []time.Duration{time.Hour, 90 * time.Minute} {
		if c.get(cached(i).Scope.Key, noon.Add(life-1)) == nil || c.get(cached(i).Scope.Key, noon.Add(life)) != nil {
			t.Errorf("record %d does not live for %s", i, life)
		}
	}
}
