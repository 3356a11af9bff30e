package story

import (
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

var (
	began = client.Time{Time: time.Date(2026, 11, 26, 2, 13, 27, 0, time.UTC)}
	ended = client.Time{Time: began.Add(4 * time.Second)}
)

func refusal(decision idem.Decision, status int) *client.Arrivals {
	a := client.Arrival{At: client.Time{Time: began.Add(time.Second)}, Decision: string(decision), Status: status}
	if decision == idem.DecisionLocked {
		a.Behind = &client.ArrivalBehind{EventID: "evt_holder", StartedAt: began, FinishedAt: ended}
	}
	return &client.Arrivals{First: a, Newest: []client.Arrival{a}, Counts: map[string]int64{string(decision): 1}}
}

func TestEachEndHasASentenceForTheOperatorAndSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		x              client.Execution
		lock           *client.Lock
		happened, todo string
	}{
		"succeeded": {client.Execution{Status: client.Success, Outcome: client.Executed,
			Response: &client.Response{Status: 200}, Duplicates: 2}, nil,
			"The service answered 200 at 02:13:31 after 4 s. 2 duplicates answered without running it again.", ""},
		"proven": {client.Execution{Status: client.Success, Outcome: client.Executed,
			Response: &client.Response{Status: 200}, ProvenAt: client.Time{Time: ended.Add(time.Second)}}, nil,
			"The service answered 200 at 02:13:31 after 4 s. Its process died, or stood still, before etcd had that; " +
				"what it knew was recorded at 02:13:32.", ""},
		"failed": {client.Execution{Status: client.Failed, Outcome: client.Executed,
			Response: &client.Response{Status: 500}}, nil,
			"The service answered 500 at 02:13:31 after 4 s.",
			"Repair the service. Stripe sends it again by itself, until 02:13:27 at the latest."},
		"with another body": {client.Execution{
			Status: client.Success, Outcome: client.Executed, Response: &client.Response{Status: 200},
			Attempts: []client.Attempt{{}, {Differs: []string{"query", "body"}}},
		}, nil,
			"The service answered 200 at 02:13:31 after 4 s. Attempt 2 came with another query, body than the one before.", ""},
		"dead letter": {client.Execution{
			Status: client.Failed, Outcome: client.Executed, Response: &client.Response{Status: 500}, RequestKept: true,
			Tries:         3,
			FailedAnswers: []client.FailedAnswer{{Status: 500, Text: "database\nis locked"}},
		}, nil, "The service answered 500 at 02:13:31 after 4 s and 3 tries: database is locked.",
			"Its request is kept: rerun it when the service is ready, or allow it again."},
		"unknown": {client.Execution{Status: client.Failed, Outcome: client.Unknown,
			Error: &client.Failure{Code: "upstream_failed", Detail: "412 bytes were sent"}}, nil,
			"The outcome is unknown at 02:13:31 after 4 s: the request was sent, and no whole answer came (412 bytes were sent).", "Check the service for this event, then allow it again if it took no effect."},
		"unknown, because its process died": {client.Execution{Status: client.Failed, Outcome: client.Unknown,
			Error: &client.Failure{Code: "lock_lost", Detail: "how far it came is unknown"}}, nil,
			"The outcome is unknown at 02:13:31 after 4 s: how far it came is unknown.", "Check the service"},
		"unknown, after an answer that began a hold": {client.Execution{Status: client.Failed, Outcome: client.Unknown,
			Error: &client.Failure{Code: "hold_expired"}}, nil,
			"The outcome is unknown at 02:13:31 after 4 s: hold expired.", "Check the service"},
		"not sent": {client.Execution{Status: client.Failed, Outcome: client.NotExecuted,
			Error: &client.Failure{Code: "upstream_unreachable"}}, nil,
			"Nothing was sent to the service: upstream unreachable at 02:13:31 after 4 s.",
			"Stripe sends it again by itself, until 02:13:27 at the latest."},
		"cancelled": {client.Execution{Status: client.Aborted, Outcome: client.NotExecuted, AbortedBy: "ops",
			AbortReason: "sent by mistake", AbortedAt: ended, Final: true}, nil,
			"Ops cancelled it at 02:13:31: sent by mistake. Nothing had been sent to the service.",
			"Nothing: it never runs again, unless it is allowed again."},
		"cancelled while the service worked on it": {client.Execution{Status: client.Aborted, Outcome: client.Unknown,
			AbortedBy: "ops", AbortReason: "stuck", AbortedAt: ended}, nil,
			"Ops cancelled it at 02:13:31: stuck. The outcome is unknown: it had begun, and how far it came is not known.",
			"Check the service for this event, then allow it again if it took no effect."},
		"replaced": {client.Execution{Status: client.Aborted, Outcome: client.NotExecuted, SupersededBy: "exec_2"}, nil,
			"It did not run: a newer event of its scope replaced it at 02:13:31.", ""},
		"refused": {client.Execution{Status: client.Refused, StartedAt: client.Time{},
			Arrivals: refusal(idem.DecisionLocked, 409)}, nil,
			"It did not run: refused with 409 at 02:13:28, because the workflow was busy with another event: evt_holder had the lock from 02:13:27 to 02:13:31 (4 s).",
			"If the running event is stuck, cancel it. Stripe sends it again by itself, until 02:13:28 at the latest."},
		"a certificate": {client.Execution{Status: client.Refused,
			Arrivals: &client.Arrivals{First: client.Arrival{At: began}, Newest: []client.Arrival{{
				At: began, Decision: string(idem.DecisionUpstreamUnreachable), Status: 502,
				Detail: "TLS handshake: x509: unknown authority",
			}}}}, nil,
			"It did not run: refused with 502 at 02:13:27, because the service could not be reached: TLS handshake: x509: unknown authority.",
			"The service is up, and TLS with it fails: check its certificate, upstream.url and upstream.tls. Stripe sends it again by itself, until 02:13:27 at the latest."},
		"lost": {client.Execution{Status: client.Refused, Arrivals: refusal(idem.DecisionPaused, 503), LostAt: ended},
			nil,
			"It did not run: refused with 503 at 02:13:28, because its route or workflow was paused. It did not come again until 02:13:31: it is possibly lost.",
			"Resend it at the sender, or run it at the service; so that no other is lost: park what comes during a pause (park), or answer what the sender repeats (respond: 503)."},
		"lost after a failure": {client.Execution{
			Status: client.Failed, Outcome: client.NotExecuted, Error: &client.Failure{Code: "upstream_unreachable"},
			Arrivals: refusal(idem.DecisionUpstreamUnreachable, 502), LostAt: ended,
		}, nil,
			"Nothing was sent to the service: upstream unreachable at 02:13:31 after 4 s. It did not come again until 02:13:31: it is possibly lost.",
			"Resend it at the sender, or run it at the service; so that no other is lost: park with unreachable in on, or answer what the sender repeats (respond: 503)."},
		"skipped": {client.Execution{Status: client.Refused, Arrivals: refusal(idem.DecisionSkipped, 200)}, nil,
			"It did not run: answered with 200 at 02:13:28, because the workflow was busy, and the route skips events meanwhile.", "To run it all the same, resend it at the sender."},
		"a bad signature": {client.Execution{Status: client.Refused, Arrivals: refusal(idem.DecisionUnverified, 401)},
			nil,
			"It did not run: refused with 401 at 02:13:28, because of a bad signature.",
			"Compare the secret here with that at the sender."},
		"released": {client.Execution{Status: client.Released,
			Released: &client.ReleasedExecution{Status: client.Failed, Outcome: client.Unknown, By: "ops",
				Reason: "no charge", At: ended}}, nil,
			"Ops allowed it to run again at 02:13:31 (no charge); the run before had ended as FAILED, unknown.",
			"Resend it at the sender if it does not come again."},
		"waiting": {client.Execution{Status: client.Pending},
			&client.Lock{EventID: "evt_holder", LockedAt: began, Waiting: 3},
			"It waits for the lock of its workflow since 02:13:27: evt_holder has had it since 02:13:27, 3 events wait.", "it runs when the lock is free"},
		"running": {client.Execution{Status: client.Running}, nil, "The service has been working on it since 02:13:27.",
			"Wait, or cancel it if it is stuck."},
		"held": {client.Execution{Status: client.Running}, &client.Lock{Held: true, ExpiresAt: ended},
			"at the latest until 02:13:31.", "Wait"},
		"cancelled, not ended": {client.Execution{Status: client.CancelRequested, AbortedBy: "ops",
			AbortReason: "stuck", AbortedAt: ended}, nil,
			"Ops asked to cancel it at 02:13:31: stuck; it has not ended yet.", "Wait, or release its lock if it does not end."},
		"held after it was accepted": {client.Execution{ExecutionID: "exec_a", Status: client.Running,
			Parked: &client.Parked{Since: began, Tries: 1}},
			&client.Lock{ExecutionID: "exec_a", Held: true, ExpiresAt: ended},
			"The service has answered and works on since 02:13:27: the lock is kept until it reports the end, at the latest until 02:13:31.",
			"Wait, or cancel it if it is stuck."},
		"accepted and cancelled, not ended": {client.Execution{ExecutionID: "exec_a", Status: client.CancelRequested,
			Parked: &client.Parked{Since: began, Tries: 1}, AbortedBy: "ops", AbortReason: "stuck", AbortedAt: ended},
			&client.Lock{ExecutionID: "exec_a", Held: true, ExpiresAt: ended},
			"Ops asked to cancel it at 02:13:31: stuck; it has not ended yet.", "Wait, or release its lock if it does not end."},
		"parked": {client.Execution{Status: client.Pending, Parked: &client.Parked{Since: began, Tries: 1, Failures: 1,
			NextAttempt: ended, LastEvidence: &client.Evidence{Status: 503}}}, nil,
			"It was accepted at 02:13:27 and tried 1 time, 1 failed, the last: 503. The next try is at 02:13:31.",
			"it is tried by itself"},
		"behind a blocked event": {client.Execution{ExecutionID: "exec_b", Status: client.Pending,
			Parked: &client.Parked{Since: began}},
			&client.Lock{ExecutionID: "exec_a", EventID: "evt_a", LockedAt: began, Waiting: 1,
				Parked: &client.Parked{Blocked: "attempts_exhausted"}},
			"It waits behind evt_a, which blocks its queue until a person decides (attempts exhausted).",
			"Decide about evt_a: run it, skip it or cancel it."},
		"waiting behind a blocked event": {client.Execution{ExecutionID: "exec_b", Status: client.Pending},
			&client.Lock{ExecutionID: "exec_a", EventID: "evt_a",
				Parked: &client.Parked{Blocked: "attempts_exhausted"}},
			"It waits since 02:13:27 behind evt_a, which blocks its queue", "Decide about evt_a"},
		"failed when it ran again": {client.Execution{Status: client.Failed, Outcome: client.Unknown, Attempt: 2,
			Error: &client.Failure{Code: "upstream_failed"}, RequestKept: true,
			Attempts: []client.Attempt{{Status: client.Success}, {Status: client.Failed}}}, nil, "",
			"duplicates do not run"},
		"blocked": {client.Execution{Status: client.Pending,
			Parked: &client.Parked{Since: began, Tries: 2, Failures: 2, Blocked: "attempts_exhausted"}}, nil,
			"It blocks its queue until a person decides (attempts exhausted).",
			"Repair what made it fail, then run it now; or skip it"},
	} {
		t.Run(name, func(t *testing.T) {
			x := c.x
			if x.Status != client.Refused && x.Status != client.Released {
				x.StartedAt = began
			}
			if x.Status.Terminal() {
				x.FinishedAt = ended
			}
			s := Story{
				Execution: &x, Lock: c.lock, Rules: &client.RouteRules{OnUnknown: "block",
					Sender: &client.RouteSender{Preset: "stripe", RetriesFor: 86400}}, Now: ended.Time,
				Stamp: func(at time.Time) string {
					return at.Format("15:04:05")
				},
			}
			if got := s.Happened(); !strings.Contains(got, c.happened) {
				t.Errorf("happened: %s", got)
			}
			if got := s.Todo(); !strings.Contains(got, c.todo) || (c.todo == "") != (got == "") {
				t.Errorf("to do: %s", got)
			}
		})
	}
}

func TestASenderThatHasGivenUpDoesNotSendAgain(t *testing.T) {
	s := Story{
		Execution: &client.Execution{Status: client.Failed, Outcome: client.Executed, StartedAt: began,
			FinishedAt: ended, Response: &client.Response{Status: 500}},
		Rules: &client.RouteRules{Sender: &client.RouteSender{Preset: "stripe", RetriesFor: 60}},
		Now:   began.Add(time.Hour), Stamp: func(at time.Time) string {
			return at.Format("15:04:05")
		},
	}
	if got, want := s.Todo(), "Repair the service. Stripe sent it again until 02:14:27 at most: resend it there."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAnEventOfUnknownOutcomeThatRunsAgainByItselfNeedsNoPermission(t *testing.T) {
	for name, c := range map[string]struct {
		kept bool
		want string
	}{
		"not kept": {false,
			"Check the service for this event: its next delivery runs it again. Whether its sender sends it again depends on the sender."},
		"kept": {true,
			"Check the service for this event, then rerun it if it took no effect: its request is kept. Its next delivery runs it again, too."},
	} {
		s := Story{Execution: &client.Execution{Status: client.Failed, Outcome: client.Unknown, StartedAt: began,
			FinishedAt: ended, RequestKept: c.kept}, Rules: &client.RouteRules{OnUnknown: "retry"}}
		if got := s.Todo(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		s.Rules = nil // as for a token that may not see the routes
		if got := s.Todo(); !strings.HasPrefix(got,
			"Check the service for this event, then allow it again if it took no effect.") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestASenderThatWasToldThatItsEventIsAcceptedDoesNotSendItAgain(t *testing.T) {
	for _, outcome := range []client.Outcome{client.NotExecuted, client.Executed} {
		s := Story{Execution: &client.Execution{Status: client.Aborted, Outcome: outcome, StartedAt: began,
			FinishedAt: ended, ParkedOn: string(idem.ParkLocked)}}
		const want = "Its sender does not send it again: it was told that the event is accepted. Resend it there."
		if got := s.Todo(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", outcome, got)
		}
		s.ParkedOn = string(idem.ParkAgain) // nobody was told anything
		if got := s.Todo(); !strings.HasSuffix(got, "Whether its sender sends it again depends on the sender.") {
			t.Errorf("%s: %s", outcome, got)
		}
	}
}

func TestEachDecisionHasAWordForTheOperator(t *testing.T) {
	for _, row := range idem.Decisions() {
		if row.Happened == "" || strings.HasSuffix(row.Happened, ".") || strings.HasSuffix(row.Todo, ".") {
			t.Errorf("%s: %q, %q", row.Decision, row.Happened, row.Todo)
		}
	}
}

func TestATicketShowsWhatSendersWroteAsTheyWroteIt(t *testing.T) {
	s := Story{
		Execution: &client.Execution{
			ExecutionID: "exec_1", EventID: "evt`[x](http://a)", Route: "stripe", Workflow: "stripe/acme",
			Status: client.Failed, Outcome: client.Executed, StartedAt: began, FinishedAt: ended,
			Response:      &client.Response{Status: 500},
			FailedAnswers: []client.FailedAnswer{{At: ended, Status: 500, Text: "a <b>\n* c"}},
			Arrivals:      refusal(idem.DecisionInFlight, 409),
		},
		Stamp: func(at time.Time) string { return at.Format("15:04:05") },
	}
	const want = "**`` evt`[x](http://a) ``** FAILED\n\nThe service answered 500 at 02:13:31 after 4 s: a \\<b\\> \\* c.\n\n" +
		"Repair the service. Whether its sender sends it again depends on the sender.\n\n- Route: `stripe`\n- Workflow: `stripe/acme`\n- Execution: `exec_1`\n- Started: 02:13:27\n- Ended: 02:13:31\n" +
		"- The service said at 02:13:31: 500: `a <b> * c`\n- The service answered: 500\n- The sender got at 02:13:28: 409 (a duplicate, while the same event was running)\n" +
		"- Page: http://page/\n- Command: `hooklock show exec_1`\n"
	if got := s.Markdown("http://page/"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAnEventThatFailedTooOftenIsSaidToWaitForAPerson, and one whose attempts did not run is not.
func TestAnEventThatFailedTooOftenIsSaidToWaitForAPerson(t *testing.T) {
	failed, unsent := client.Attempt{Status: client.Failed, Outcome: client.Unknown},
		client.Attempt{Status: client.Aborted, Outcome: client.NotExecuted}
	for name, c := range map[string]struct {
		attempts []client.Attempt
		most     int
		want     bool
	}{
		"as often as it may":       {[]client.Attempt{failed, failed, failed}, 3, true},
		"not so often":             {[]client.Attempt{failed, failed, failed}, 4, false},
		"one provably did not run": {[]client.Attempt{failed, unsent, failed}, 3, false},
		"the route counts none":    {[]client.Attempt{failed, failed, failed}, 0, false},
	} {
		s := Story{Execution: &client.Execution{Status: client.Failed, Outcome: client.Unknown, Attempt: 3,
			Attempts: c.attempts}, Rules: &client.RouteRules{OnUnknown: "retry", Attempts: c.most}}
		if got := strings.Contains(s.Todo(), "failed as often as its route lets it"); got != c.want {
			t.Errorf("%s: %s", name, s.Todo())
		}
	}
}

// Page and commands show the same number for the same estimate.
func TestAnEstimateIsRoundedAndNeverNothing(t *testing.T) {
	for took, want := range map[float64]string{0.0000001: "0.001 s", 0.0127: "0.013 s", 0.9996: "1 s", 1.26: "1.3 s",
		59.94: "59 s"} {
		if got := Span(Estimate(took)); got != want {
			t.Errorf("%v s: %s, want %s", took, got, want)
		}
	}
}
