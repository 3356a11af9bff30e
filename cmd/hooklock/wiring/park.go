package wiring

import (
	"errors"
	"fmt"
	"time"

	"hooklock/config"
	"hooklock/idem"
	"hooklock/proxy/sender"
)

// parkPolicy returns nil if the route parks nothing.
func parkPolicy(c *config.Park) *idem.ParkPolicy {
	if !c.Enabled {
		return nil
	}
	p := &idem.ParkPolicy{
		After: c.After, Answer: c.Answer, MaxAge: c.MaxAge, Attempts: c.Attempts, OnFailure: c.OnFailure, Signature: c.Signature,
		MaxWaiting: c.MaxWaiting, FailedAnswers: c.FailedAnswers,
	}
	for _, on := range c.On {
		switch on {
		case idem.ParkLocked:
			p.Locked = true
		case idem.ParkSlow:
			p.Slow = true
		case idem.ParkUnreachable:
			p.Unreachable = true
		case idem.ParkUnknown:
			p.Unknown = true
		case idem.ParkFailed:
			p.Failed = true
		}
	}
	return p
}

// checkPark checks a route's park against what is known of its sender.
func checkPark(r *config.Route, preset *sender.Preset) (problems config.Problems) {
	if !r.Park.Enabled {
		return nil
	}
	refuse := func(path, unless, format string, args ...any) {
		problems = append(problems, config.Problem{Path: path, Unless: unless, Text: fmt.Sprintf(format, args...)})
	}
	if r.OnSenderLimit == config.SenderLimitPark && (preset == nil || len(preset.Facts.Limits) == 0) {
		refuse("on_sender_limit", "", "park: it is not known when the sender switches an endpoint off; docs/senders has the presets of which that is established. Leave it out")
	}
	if preset != nil {
		f := &preset.Facts
		if f.NeverParks() {
			refuse("park", "", "%s uses the answer to every delivery (%s), so nothing else can stand in for the service's; leave park out", preset.Name, f.Answer)
		}
		if f.Timeout > 0 && r.Park.After >= f.Timeout {
			refuse("park.after", "", "%s: %s waits %s for an answer and hangs up before; choose less", idem.DurationText(r.Park.After), preset.Name, f.Timeout)
		}
		if len(f.Success) > 0 && !f.Accepts(r.Park.Answer) {
			refuse("park.answer", "", "%d: %s takes %s for received, and would send the event again", r.Park.Answer, preset.Name, f.SuccessText())
		}
	}
	renewal, tolerance := sender.RenewalOf(signatureConfig(&r.Verify))
	switch {
	case r.Park.Signature == idem.SignatureRenew && renewal == sender.RenewalImpossible:
		refuse("park.signature", "", "renew: %s", sender.ErrNotRenewable)
	case r.Park.Signature == idem.SignatureRenew && r.Verify.Complete():
		if _, err := sender.NewRenewer(signatureConfig(&r.Verify)); err != nil && !errors.Is(err, sender.ErrNotRenewable) {
			refuse("park.signature", "", "renew: %v", err)
		}
	case r.Park.Signature == idem.SignatureKeep && renewal != sender.RenewalNeedless && tolerance > 0 && r.Park.MaxAge > tolerance:
		what := "say signature: renew, or max_age: " + idem.DurationText(tolerance)
		if renewal == sender.RenewalImpossible {
			what = "say max_age: " + idem.DurationText(tolerance) + " or longer, where the service does not look at the signature's age"
		}
		refuse("park.max_age", "park.max_age", "%s: a service that checks signatures refuses one that is older than %s (signature: keep); %s",
			idem.DurationText(r.Park.MaxAge), idem.DurationText(tolerance.Round(time.Second)), what)
	}
	return problems
}

// NoRoute says that accepted events have no route any more.
func NoRoute(route string, events int) string {
	return fmt.Sprintf("route %s: %d accepted events wait, and no route runs them; former_names: [%s] on a route does", route, events, route)
}
