package serve

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"hooklock/admin/attention"
	"hooklock/admin/client"
	"hooklock/admin/report"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/sender"
	"hooklock/proxy/suggest"
	"hooklock/proxy/telemetry"
	"hooklock/proxy/wire"
)

// findings adds deliveries to the report.
type findings struct{ *report.Tally }

// OnDelivered implements proxy.Observer.
func (f findings) OnDelivered(r *proxy.Report) {
	d := report.Delivery{
		Route: r.Route, Decision: r.Decision, Carried: true, MissingID: r.EventIDPart == proxy.PartMissing,
		Stale: r.Stale != "", Workflow: r.Workflow, Key: r.Key,
		EventID: r.EventID, Placeholder: r.EventIDPart == proxy.PartPlaceholder, Changed: r.Changed, Differs: r.Differs,
		Execution: r.Execution, Code: r.Code, TraceID: r.TraceID, Status: r.Status,
		Redirected: r.Redirected(), TwinOf: r.TwinOf, Result: resultOf(r), Failure: failureOf(r), Members: r.Members,
		Took: r.Total, Service: r.Upstream, Counted: r.Counted, Accepted: r.ParkedOn != "", Verified: r.Verified,
		UnsignedHandshake: r.UnsignedHandshake || r.Challenged,
	}
	if r.Decision == idem.DecisionBypassed {
		d.Decision, d.Carried = r.Would, r.Would == idem.DecisionExecuted
	}
	if r.Signature != proxy.SignatureValid {
		d.Signature = r.Signature
	}
	f.Note(&d)
}

// OnPassed implements proxy.Observer.
func (findings) OnPassed(*proxy.Report) {}

// Event implements proxy.Observer.
func (f findings) Event(name proxy.EventName, r *proxy.Report) {
	if name == proxy.EventTried {
		f.CountTry(r.Route, resultOf(r), r.Upstream, failureOf(r), r.Counted)
	}
}

// resultOf returns the result of the request to the service; 0 = there was none, as of what was
// cancelled while it waited, and of a copy whose first delivery failed.
func resultOf(r *proxy.Report) report.Result {
	class := r.Decision.Row().Class
	switch {
	case r.UpstreamFrom.IsZero(), r.Challenged:
		return 0
	case r.UpstreamStatus == 0, class == idem.ClassFailed, class == idem.ClassBug:
		return report.Broken
	case idem.Is2xx(r.UpstreamStatus):
		return report.Succeeded
	}
	return report.Failed
}

// failureOf returns why the request to the service failed; the zero value: it did not, or that says
// nothing of the service.
func failureOf(r *proxy.Report) report.Failure {
	switch row := r.Decision.Row(); {
	case resultOf(r) == 0, resultOf(r) == report.Succeeded, r.Decision == idem.DecisionAborted,
		r.Decision == idem.DecisionLockLost, row.Class == idem.ClassBug:
		return report.Failure{}
	case r.UpstreamStatus != 0:
		return report.Failure{Cause: "the service says " + strconv.Itoa(r.UpstreamStatus), Said: r.Said}
	case r.Err != nil && row.Class == idem.ClassFailed:
		cause := r.Err
		if sent, ok := errors.AsType[*wire.SendError](cause); ok { // how far it came is with the event
			cause = sent.Err
		}
		return report.Failure{Cause: story.Words(string(row.Decision)) + ": " + cause.Error()}
	case r.Err != nil:
		return report.Failure{Cause: "no whole answer came: " + r.Err.Error()}
	}
	return report.Failure{Cause: "no whole answer came"}
}

// senderOf returns how the sender of a route counts failures, or the zero value if that is not
// established.
func senderOf(r *proxy.Route) (s report.Sender) {
	p := r.Verify.Preset
	if p == nil || len(p.Facts.Limits) == 0 {
		return s
	}
	for _, l := range p.Facts.Limits {
		s.Limits = append(s.Limits, report.Limit(l))
	}
	s.Fails = p.Facts.Fails
	return s
}

// routeHealth exports how near routes are to the limits of their senders.
func (s *Service) routeHealth() []telemetry.RouteHealth {
	var all []telemetry.RouteHealth
	for _, h := range s.report.Health() {
		shown := telemetry.RouteHealth{Route: h.Route, Last: h.Last}
		for _, n := range h.Limits {
			shown.Limits = append(shown.Limits,
				telemetry.SenderLimit{Limit: n.Limit.String(), Near: n.Ratio, Unverified: n.Unverified})
		}
		all = append(all, shown)
	}
	return all
}

// setRoutes sets the routes of metrics and report.
func (s *Service) setRoutes(routes []*proxy.Route) {
	s.telemetry.SetRoutes(routes)
	var names []string
	byName := make(map[string]*proxy.Route, len(routes))
	named := make([]report.Route, 0, len(routes))
	rules := make([]client.RouteRules, 0, len(routes))
	for _, r := range routes {
		byName[r.Name] = r
		rules = append(rules, rulesOf(r))
		names = append(append(names, r.Name), r.Former...)
		named = append(named, report.Route{Name: r.Name, Mode: r.Mode(), Sender: senderOf(r)})
	}
	s.report.SetRoutes(named)
	s.rules.Store(&rules)
	s.routeNames.Store(&names)
	s.routes.Store(&byName)
	s.Store.FollowRefused()
}

// rulesOf returns the description of a route for operators.
func rulesOf(r *proxy.Route) client.RouteRules {
	v := client.RouteRules{Route: r.Name, Mode: r.Mode(), Path: r.Pattern.String(),
		OnUnknown: string(r.Policy.OnUnknown), Attempts: r.Policy.Attempts,
		SignatureAge: r.SignatureAge.Seconds(), KeepRequests: r.KeepRequests.Seconds()}
	if p := r.Verify.Preset; p != nil {
		v.Sender = &client.RouteSender{
			Preset: p.Name, Patience: p.Facts.Timeout.Seconds(), RetriesOn: p.Facts.RetriesOn,
			RetriesFor: p.Facts.RetriesFor.Seconds(), GivesUp: p.Facts.GivesUp,
		}
	}
	for _, a := range r.Answers() {
		v.Answers = append(v.Answers, client.RouteAnswer{Decision: string(a.Decision), Text: a.Text})
	}
	return v
}

// suggestRoutes returns the routes that fit the deliveries of this process. It implements
// admin.Options.Suggest.
func (s *Service) suggestRoutes(since time.Time) client.SuggestionList {
	found := s.learner.Suggest(since)
	list := client.SuggestionList{
		Replica: s.replica, Recording: s.learner != nil, Passed: int64(found.Passed), Missed: int64(found.Missed),
		Suggestions: []client.Suggestion{},
	}
	for _, one := range found.Suggestions {
		list.Suggestions = append(list.Suggestions, viewOfSuggestion(one))
	}
	return list
}

func viewOfSuggestion(s *suggest.Suggestion) client.Suggestion {
	view := client.Suggestion{
		Route: s.Name, Configured: s.Configured, Path: s.Path, Deliveries: s.Deliveries,
		Since: client.Time{Time: s.Since}, Until: client.Time{Time: s.Until},
		Preset: s.Preset, EventID: s.EventID, Workflow: s.Workflow, Ignore: s.Ignore, YAML: s.YAML(),
		Sentences: s.Sentences,
	}
	if p := s.Predicted; p != nil {
		view.Predicted = &client.Predicted{Events: p.Events, Repeats: p.Repeats, Others: p.Others}
	}
	return view
}

const (
	// resendPatience is how long an event is followed if nothing is known of its sender's schedule.
	resendPatience = 10 * time.Minute
	// neverPatience is how long an event is followed whose sender sends nothing again by itself.
	neverPatience = time.Minute
	// refusedPerSecond bounds the refused events of a route without signatures that are stored,
	// unless it has new_per_second.
	refusedPerSecond = 20
)

// followingOf says how refused events of a route are followed; the zero value: the route is not
// known, or it remembers no events.
func (s *Service) followingOf(route string, byPayload bool) idem.Following {
	routes := s.routes.Load()
	if routes == nil || (*routes)[route] == nil || !(*routes)[route].Policy.Idempotency {
		return idem.Following{}
	}
	return followingOf((*routes)[route], byPayload)
}

func followingOf(r *proxy.Route, byPayload bool) idem.Following {
	f := idem.Following{Patience: resendPatience, Remembered: r.Policy.RetentionOf(byPayload)}
	if p := r.Verify.Preset; p != nil {
		f.Schedule = p.Facts.RetriesFor
		if p.Facts.Retries == sender.RetriesNever {
			f.Patience = neverPatience
		}
	}
	if !r.Policy.Verified {
		f.NewPerSecond = cmp.Or(r.Policy.NewPerSecond, refusedPerSecond)
	}
	return f
}

// A process reads what the others have seen of the senders of its routes every standingsEvery, or
// less often if there are many processes.
const (
	standingsEvery   = 2 * time.Second
	standingsForEach = 100 * time.Millisecond
)

// followStandings lets the report know what other processes have seen of the senders of routes,
// until ctx ends: a balancer gives each process a part of the failures, and a sender counts all. It
// reads only if a sender is known to have a limit, and keeps what it knows while etcd is away.
func (s *Service) followStandings(ctx context.Context) {
	pause := standingsEvery
	for cli.Pause(ctx, pause) {
		if !s.report.HasLimits() {
			continue
		}
		reading, cancel := context.WithTimeout(ctx, s.requestTimeout)
		notes, err := s.Store.Replicas(reading)
		cancel()
		if err != nil {
			continue
		}
		pause = max(standingsEvery, time.Duration(len(notes))*standingsForEach)
		s.report.SetElsewhere(standingsElsewhere(attention.ReadReplicas(notes)))
	}
}

// standingsElsewhere adds up what the other processes have seen of the sender of each route, those
// that ended in the last hour included.
func standingsElsewhere(all []attention.Replica) map[string]report.Standings {
	sums := map[string]report.Standings{}
	for i := range all {
		if all[i].Self {
			continue
		}
		for _, r := range all[i].Routes {
			sum := sums[r.Route]
			sum.Add(r.Standings)
			sums[r.Route] = sum
		}
	}
	return sums
}
