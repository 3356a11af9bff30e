package idem_test

import (
	"fmt"
	"testing"

	"hooklock/idem"
)

// judgePolicy returns a policy that keeps 2xx and parks, changed as change says.
func judgePolicy(change func(*idem.Policy)) *idem.Policy {
	p := &idem.Policy{Idempotency: true, OnUnknown: idem.UnknownRetry,
		Park: &idem.ParkPolicy{OnFailure: idem.FailureHold}}
	p.Keep.Add(200, 299)
	if change != nil {
		change(p)
	}
	return p
}

// TestWhatATryMeans has a row for each kind of try, with what follows for an event whose sender
// waits, and for one that was accepted.
func TestWhatATryMeans(t *testing.T) {
	answered := func(status int) idem.Try { return idem.Try{Status: status, Sent: true} }
	challenge := idem.Try{Status: 401, Sent: true, Challenge: true}
	last := func(t idem.Try) idem.Try { t.Last = true; return t }
	keeps := func(status int) func(*idem.Policy) { return func(p *idem.Policy) { p.Keep.Add(status, status) } }
	skips := func(p *idem.Policy) { p.Park.OnFailure = idem.FailureSkip }
	blocks := func(p *idem.Policy) { p.OnUnknown = idem.UnknownBlock }
	const (
		unsent, unknown, done = idem.NotExecuted, idem.Unknown, idem.Executed
		exhausted, refused    = idem.CodeAttemptsExhausted, idem.CodeUpstreamStatus
	)
	for _, c := range []struct {
		what   string
		change func(*idem.Policy)
		try    idem.Try
		want   idem.Judgement
	}{
		{"a 2xx settles the event", nil, answered(204),
			idem.Judgement{Outcome: done, Status: idem.Success, Remembered: true,
				IfSenderWaits: idem.ToSettle, Accepted: idem.ToSettle}},
		{"a 2xx that is not kept succeeds, and a duplicate runs", func(p *idem.Policy) {
			p.Keep = idem.StatusSet{}
		}, answered(204),
			idem.Judgement{Outcome: done, Status: idem.Success, IfSenderWaits: idem.ToSettle, Accepted: idem.ToSettle}},
		{"a redirect, which is not followed, is the sender's; accepted, it waits for a person at once", nil,
			answered(302), idem.Judgement{Outcome: done, Status: idem.Failed, IfSenderWaits: idem.ToSettle,
				Accepted: idem.ToBlock, Counts: true, Code: refused}},
		{"or is a dead letter at once, as any other refusal", skips, answered(308),
			idem.Judgement{Outcome: done, Status: idem.Failed, IfSenderWaits: idem.ToSettle,
				Accepted: idem.ToDeadLetter, Counts: true, Code: refused}},
		{"a redirect that is kept settles the event", keeps(303), answered(303),
			idem.Judgement{Outcome: done, Status: idem.Failed, Remembered: true, IfSenderWaits: idem.ToSettle,
				Accepted: idem.ToSettle}},
		{"so does a 404 that is kept", keeps(404), answered(404),
			idem.Judgement{Outcome: done, Status: idem.Failed, Remembered: true, IfSenderWaits: idem.ToSettle,
				Accepted: idem.ToSettle}},
		{"another 4xx waits for a person at once", nil, answered(404),
			idem.Judgement{Outcome: done, Status: idem.Failed, IfSenderWaits: idem.ToSettle, Accepted: idem.ToBlock,
				Counts: true, Code: refused}},
		{"a 5xx is repeated by whichever repeats the event", nil, answered(503),
			idem.Judgement{Outcome: done, Status: idem.Failed, IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed,
				Accepted: idem.ToTryAgain, Counts: true}},
		{"so is a 408", nil, answered(408), idem.Judgement{Outcome: done, Status: idem.Failed,
			IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed, Accepted: idem.ToTryAgain, Counts: true}},
		{"so is a 409: something is in the way", nil, answered(409), idem.Judgement{Outcome: done, Status: idem.Failed,
			IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed, Accepted: idem.ToTryAgain, Counts: true}},
		{"so is a 423: a resource is locked", nil, answered(423), idem.Judgement{Outcome: done, Status: idem.Failed,
			IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed, Accepted: idem.ToTryAgain, Counts: true}},
		{"so is a 425: it came too early", nil, answered(425), idem.Judgement{Outcome: done, Status: idem.Failed,
			IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed, Accepted: idem.ToTryAgain, Counts: true}},
		{"so is a 429", nil, answered(429), idem.Judgement{Outcome: done, Status: idem.Failed,
			IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed, Accepted: idem.ToTryAgain, Counts: true}},
		{"a 5xx that is kept settles an event whose sender waits, and is repeated for an accepted one", keeps(500),
			answered(500),
			idem.Judgement{Outcome: done, Status: idem.Failed, Remembered: true, IfSenderWaits: idem.ToSettle,
				Accepted: idem.ToTryAgain, Counts: true}},
		{"so does a 409 that is kept", keeps(409), answered(409), idem.Judgement{Outcome: done, Status: idem.Failed,
			Remembered: true, IfSenderWaits: idem.ToSettle, Accepted: idem.ToTryAgain, Counts: true}},
		{"the last try that may fail waits for a person", nil, last(answered(500)),
			idem.Judgement{Outcome: done, Status: idem.Failed, IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed,
				Accepted: idem.ToBlock, Counts: true, Code: exhausted}},
		{"or is a dead letter", skips, last(answered(500)), idem.Judgement{Outcome: done, Status: idem.Failed,
			IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkFailed, Accepted: idem.ToDeadLetter, Counts: true,
			Code: exhausted}},
		{"a try of which no byte was sent leaves no trace, and is repeated however often", nil, last(idem.Try{}),
			idem.Judgement{Outcome: unsent, IfSenderWaits: idem.ToRelease, ParkOn: idem.ParkUnreachable,
				Accepted: idem.ToTryAgain}},
		{"one that is hopeless is a dead letter", nil, idem.Try{Hopeless: true},
			idem.Judgement{Outcome: unsent, IfSenderWaits: idem.ToRelease, ParkOn: idem.ParkUnreachable,
				Accepted: idem.ToDeadLetter, Counts: true}},
		{"a try without an answer may have run", nil, idem.Try{Sent: true}, idem.Judgement{Outcome: unknown,
			Status: idem.Failed, IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkUnknown, Accepted: idem.ToTryAgain,
			Counts: true}},
		{"and waits for a person if the policy says so", blocks, idem.Try{Sent: true}, idem.Judgement{Outcome: unknown,
			Status: idem.Failed, IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkUnknown, Accepted: idem.ToBlock,
			Counts: true, Code: idem.DecisionUnknown.Row().Code}},
		{"or if it was the last one", nil, last(idem.Try{Sent: true}), idem.Judgement{Outcome: unknown,
			Status: idem.Failed, IfSenderWaits: idem.ToSettle, ParkOn: idem.ParkUnknown, Accepted: idem.ToBlock,
			Counts: true, Code: exhausted}},
		{"an answer that says nothing about the effect is the same, kept or not", func(p *idem.Policy) {
			p.Unknown.Add(204, 204)
		}, answered(204),
			idem.Judgement{Outcome: unknown, Status: idem.Failed, IfSenderWaits: idem.ToSettle,
				ParkOn: idem.ParkUnknown, Accepted: idem.ToTryAgain, Counts: true}},
		{"a challenge leaves no trace, whatever is kept; accepted, it waits for a person", keeps(401), challenge,
			idem.Judgement{Outcome: done, IfSenderWaits: idem.ToRelease, Accepted: idem.ToBlock, Counts: true,
				Code: refused}},
		{"or is a dead letter, also if such an answer says nothing about the effect", func(p *idem.Policy) {
			skips(p)
			p.Unknown.Add(401, 401)
		}, challenge,
			idem.Judgement{Outcome: done, IfSenderWaits: idem.ToRelease, Accepted: idem.ToDeadLetter, Counts: true,
				Code: refused}},
		{"a hold is the upstream's own affair", nil, idem.Try{Status: 202, Sent: true, Held: true},
			idem.Judgement{Outcome: done, IfSenderWaits: idem.ToHold, Accepted: idem.ToHold}},
	} {
		if got := idem.Judge(judgePolicy(c.change), c.try); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.what, got, c.want)
		}
	}
}

// TestWhatHoldsForEachTry says what every row of the judgement has in common, over all policies and
// tries.
func TestWhatHoldsForEachTry(t *testing.T) {
	eachTry(func(p *idem.Policy, try idem.Try) {
		j := idem.Judge(p, try)
		name := fmt.Sprintf("%+v, keeps %q, says nothing %q, %s, %s: %+v", try, &p.Keep, &p.Unknown, p.OnUnknown,
			p.Park.OnFailure, j)
		for _, holds := range []struct {
			what string
			ok   bool
		}{
			{"something follows", j.IfSenderWaits != 0 && j.Accepted != 0},
			{"an event whose sender waits has one try, and waits for nobody", j.IfSenderWaits <= idem.ToHold},
			{"only a challenge, and a try of which nothing was sent, leave no trace",
				(j.IfSenderWaits == idem.ToRelease) == (j.Outcome == idem.NotExecuted || try.Challenge)},
			{"an accepted event is never forgotten", j.Accepted != idem.ToRelease},
			{"only an answer that the policy keeps settles the event", !j.Remembered ||
				j.Outcome == idem.Executed && p.Keep.Has(try.Status)},
			{"what settles the event is not parked", !j.Remembered || j.ParkOn == ""},
			{"without an answer, what was sent may have run", try.Status != 0 || !try.Sent ||
				j.Outcome == idem.Unknown},
			{"a failed try of an accepted event counts, unless nothing was sent",
				j.Counts == (j.Accepted > idem.ToHold && (j.Outcome != idem.NotExecuted || try.Hopeless))},
			{"an accepted event that has no further try says why",
				(j.Code != "" || try.Hopeless) == (j.Accepted >= idem.ToBlock)},
			{"a success is never repeated", j.Status != idem.Success || j.Accepted == idem.ToSettle},
		} {
			if !holds.ok {
				t.Errorf("%s: %s", holds.what, name)
			}
		}
	})
}

// eachTry calls f with every combination of what a judgement depends on.
func eachTry(f func(*idem.Policy, idem.Try)) {
	for facts := range 1 << 8 {
		bit := func(n int) bool { return facts>>n&1 == 1 }
		for _, status := range []int{0, 200, 302, 401, 404, 408, 409, 423, 425, 429, 500, 503} {
			p := judgePolicy(func(p *idem.Policy) { p.Idempotency = bit(0) })
			if bit(1) {
				p.Keep.Add(status, status)
			}
			if bit(2) {
				p.Unknown.Add(status, status)
			}
			if bit(3) {
				p.OnUnknown = idem.UnknownBlock
			}
			if bit(4) {
				p.Park.OnFailure = idem.FailureSkip
			}
			try := idem.Try{Status: status, Sent: status != 0 || bit(5), Held: status != 0 && bit(6), Last: bit(7)}
			f(p, try)
			if status == 401 && !try.Held {
				try.Challenge = true
				f(p, try)
			}
			if !try.Sent {
				try.Hopeless = true
				f(p, try)
			}
		}
	}
}

// TestARouteSaysAfterWhichAnswersAnAcceptedEventIsTriedAgain, and for the same ones a delivery is
// accepted.
func TestARouteSaysAfterWhichAnswersAnAcceptedEventIsTriedAgain(t *testing.T) {
	var on idem.StatusSet
	on.Add(404, 404)
	for status, want := range map[int]idem.Disposition{404: idem.ToTryAgain, 500: idem.ToBlock, 429: idem.ToBlock} {
		j := idem.Judge(&idem.Policy{Park: &idem.ParkPolicy{RetryOn: on}}, idem.Try{Status: status, Sent: true})
		if parks := j.ParkOn == idem.ParkFailed; j.Accepted != want || parks != (status == 404) {
			t.Errorf("%d: %+v", status, j)
		}
	}
	for status, want := range map[int]idem.Disposition{404: idem.ToBlock, 423: idem.ToTryAgain, 599: idem.ToTryAgain} {
		if j := idem.Judge(&idem.Policy{Park: &idem.ParkPolicy{}},
			idem.Try{Status: status, Sent: true}); j.Accepted != want {
			t.Errorf("where it says nothing, %d: %+v", status, j)
		}
	}
}
