package wiring

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"hooklock/config"
	"hooklock/idem"
	"hooklock/proxy/requests"
	"hooklock/proxy/sender"
)

// parkPolicy returns nil if the route parks nothing.
func parkPolicy(c *config.Park) *idem.ParkPolicy {
	if !c.Enabled {
		return nil
	}
	p := &idem.ParkPolicy{
		After: c.After, Answer: c.Answer, MaxAge: c.MaxAge, Attempts: c.Attempts, OnFailure: c.OnFailure,
		Signature:  c.Signature,
		MaxWaiting: c.MaxWaiting, FailedAnswers: c.FailedAnswers, RetryFirst: c.Retry.First, RetryMost: c.Retry.Most,
		Delay: c.Delay,
	}
	for _, on := range c.Retry.On {
		p.RetryOn.Add(on.Low, on.High)
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
	if r.OnSenderLimit == config.SenderLimitPark && (preset == nil || len(preset.Facts.Limits) == 0) {
		problems = append(problems, config.Problem{
			Path: "on_sender_limit",
			Text: "park: it is not known after how many failures this sender disables an endpoint; leave it out, or " +
				"see docs/senders for presets with a known limit",
		})
	}
	if preset != nil {
		problems = append(problems, checkParkAnswer(&r.Park, preset)...)
	}
	return append(problems, checkParkSignature(r)...)
}

// checkParkAnswer checks whether the sender waits for the answer of a parked event, and takes it
// for received.
func checkParkAnswer(park *config.Park, preset *sender.Preset) (problems config.Problems) {
	f := &preset.Facts
	refuse := func(path, format string, args ...any) {
		problems = append(problems, config.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	if f.NeverParks() {
		refuse("park", "%s uses the answer to every delivery (%s), so nothing else can stand in for the service's; "+
			"leave park out", preset.Name, f.Answer)
	}
	if f.Timeout > 0 && park.After >= f.Timeout {
		refuse("park.after", "%s: %s waits %s for an answer and hangs up before; choose less",
			idem.DurationText(park.After), preset.Name, f.Timeout)
	}
	if len(f.Success) > 0 && !f.Accepts(park.Answer) {
		refuse("park.answer", "%d: %s takes %s for received, and would send the event again", park.Answer, preset.Name,
			f.SuccessText())
	}
	return problems
}

// checkParkSignature checks whether the service can verify the signature of a parked request when
// it runs.
func checkParkSignature(r *config.Route) config.Problems {
	verify := signatureConfig(&r.Verify)
	renewal, tolerance := sender.RenewalOf(verify)
	impossible := renewal == sender.RenewalImpossible
	if r.Park.Signature == idem.SignatureRenew {
		if !impossible && !r.Verify.Complete() { // its own problems are told already
			return nil
		}
		if _, err := sender.NewRenewer(verify); err != nil {
			return config.Problems{{Path: "park.signature", Text: fmt.Sprintf("renew: %v", err)}}
		}
		return nil
	}
	if renewal == sender.RenewalNeedless || tolerance == 0 || r.Park.MaxAge <= tolerance {
		return nil
	}
	what := "say signature: renew, or max_age: " + idem.DurationText(tolerance)
	if impossible {
		what = "say max_age: " + idem.DurationText(tolerance) +
			" or longer, where the service does not look at the signature's age"
	}
	return config.Problems{{Path: "park.max_age", Unless: "park.max_age", Text: fmt.Sprintf(
		"%s: a service that checks signatures refuses one that is older than %s (signature: keep); %s",
		idem.DurationText(r.Park.MaxAge), idem.DurationText(tolerance.Round(time.Second)), what)}}
}

// NoRoute says that accepted events have no route any more.
func NoRoute(route string, events int) string {
	return fmt.Sprintf("route %s: %d accepted events wait, and no route runs them; former_names: [%s] on a route does",
		route, events, route)
}

// ParkOptions returns where the bytes of parked requests are stored, with the keys that
// Keeper.Reload takes over. It reads no certificates of S3, which ParkStore does.
func ParkOptions(c *config.Config) requests.Options {
	p := &c.ParkStore
	o := requests.Options{Inline: int(p.Inline), Dir: c.RequestsDir(), Keys: p.Keys.Reveal()}
	if p.S3.Endpoint != "" {
		o.S3 = &requests.S3Options{
			Endpoint: strings.TrimSuffix(p.S3.Endpoint, "/"), Bucket: p.S3.Bucket, Prefix: p.S3.Prefix,
			Region:    p.S3.Region,
			AccessKey: p.S3.AccessKey.Reveal(), SecretKey: p.S3.SecretKey.Reveal(), Timeout: p.S3.RequestTimeout,
		}
	}
	return o
}

// ParkStore returns the argument of requests.Open. log is as for ClientTLS.
func ParkStore(c *config.Config, log *slog.Logger) (requests.Options, error) {
	o := ParkOptions(c)
	if o.S3 == nil || !strings.HasPrefix(o.S3.Endpoint, "https:") {
		return o, nil
	}
	var err error
	o.S3.TLS, err = ClientTLS("park_store.s3.tls", &c.ParkStore.S3.TLS, log)
	return o, err
}
