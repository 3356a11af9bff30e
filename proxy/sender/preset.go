package sender

import (
	"time"

	"hooklock/idem"
)

// Preset is what a route should say for one sender, and why. A route may override every field.
//
// A fact of low confidence is not relied on: then the preset takes the setting with which nothing is lost (running an event
// twice, as without Hooklock, rather than not at all) and Notes says so.
type Preset struct {
	Name    string
	Aliases []string
	// Scheme is the verify.scheme; "none" where the sender signs nothing that could be checked here.
	Scheme string
	// Tolerance is the verify.tolerance; 0 = no age check.
	Tolerance time.Duration
	// Methods are those that are deliveries; empty: the route's default (POST, PUT, PATCH).
	Methods []string

	// EventID is the event_id template. Empty: ExtractID reads the ID, because a template cannot.
	EventID string
	// ExtractID reads the event's ID when EventID is empty, else it is nil.
	ExtractID func(d *Delivery) EventID
	// IDHeaders are the headers that ExtractID reads, for what is said about IDs that are not signed.
	IDHeaders []string
	// IDText says in a table where the ID comes from.
	IDText    string
	OnMissing string // on_missing_event_id: payload, reject or pass

	OnMismatch string        // idempotency.on_mismatch: reject, replay, execute or replay_unsigned
	InFlight   string        // idempotency.in_flight: conflict or attach
	Retention  time.Duration // idempotency.retention: over the sender's retries, and where that is feasible its manual ones
	Strategy   string        // lock.strategy: fail_fast or wait
	// WaitTimeout is the lock.wait_timeout; for fail_fast the default, in case the route changes the strategy.
	WaitTimeout time.Duration
	// SenderTimeout is how long the sender waits for its answer; 0 = it does not say.
	SenderTimeout time.Duration
	// RetryHorizon is how long after the first attempt the sender's last automatic one comes; 0 = none, or it does not say.
	RetryHorizon time.Duration
	// NeverRetries: an answer that refuses loses the delivery.
	NeverRetries bool
	// RetryAfterUnit is what a number in Retry-After means to this sender.
	RetryAfterUnit time.Duration
	// Respond overrides the status of refusing decisions.
	Respond map[idem.Decision]int

	// Handshakes pass through as bypassed.
	Handshakes []Handshake
	// Sources says where the facts come from.
	Sources []string
	// Notes are what a user must know: what is promised, what cannot be, which facts were too weak to rely on.
	Notes []string
}

// Handshake is a request of the sender that is no event: it goes to the upstream without a key or a lock.
type Handshake struct {
	Name string
	// Signed: its signature is checked first, like that of an event.
	Signed bool
	// Matches reads only what the signature covers, where there is one: else whoever captured an event could have it run
	// again by calling it a handshake.
	Matches func(d *Delivery) bool
}

// Handshake returns the handshake that d is, or nil.
func (p *Preset) Handshake(d *Delivery) *Handshake {
	for i := range p.Handshakes {
		if p.Handshakes[i].Matches(d) {
			return &p.Handshakes[i]
		}
	}
	return nil
}

// UpstreamTimeout is the time that is left for the upstream when a delivery has waited for its lock as long as it may; 0 =
// unknown. It is a hint: an upstream that takes longer still has its outcome recorded, and the sender's retry gets it.
func (p *Preset) UpstreamTimeout() time.Duration {
	const overhead = 500 * time.Millisecond // network, signature, two transactions
	left := p.SenderTimeout - overhead
	if p.Strategy == strategyWait {
		left -= p.WaitTimeout
	}
	return max(left, 0)
}

// Lookup finds a preset by its name or alias.
func Lookup(name string) (*Preset, bool) {
	all := Presets()
	for i := range all {
		if all[i].Name == name {
			return &all[i], true
		}
		for _, alias := range all[i].Aliases {
			if alias == name {
				return &all[i], true
			}
		}
	}
	return nil, false
}

// Presets lists the presets. The slice is the caller's.
func Presets() []Preset {
	all := []Preset{stripe(), github(), gitlab(), bitbucket(), shopify(), slack(), twilio(), sendgrid(), paypalPreset(), square(), adyenPreset(), mailgun(),
		hubspot(), zoom(), jira(), linear(), discordPreset(), standardWebhooks(), cloudevents(), snsPreset(), pubsub(), eventgrid()}
	for i := range all {
		all[i].fill()
	}
	return all
}

// The words of the configuration that presets use.
const (
	onMissingPayload = "payload"

	mismatchReject  = "reject"
	mismatchReplay  = "replay"
	mismatchExecute = "execute"
	// mismatchReplayUnsigned is replay for senders whose deliveries nobody can verify.
	mismatchReplayUnsigned = "replay_unsigned"

	inFlightConflict = "conflict"
	inFlightAttach   = "attach"

	strategyFailFast = "fail_fast"
	strategyWait     = "wait"
)

const day = 24 * time.Hour

// fill sets what most presets have in common.
func (p *Preset) fill() {
	if p.Scheme == "" {
		p.Scheme = p.Name
	}
	if p.IDText == "" {
		p.IDText = p.EventID
	}
	if p.OnMissing == "" {
		p.OnMissing = onMissingPayload
	}
	if p.Retention == 0 {
		p.Retention = 7 * day
	}
	if p.RetryAfterUnit == 0 {
		p.RetryAfterUnit = time.Second
	}
	if p.WaitTimeout == 0 {
		p.WaitTimeout = 5 * time.Second
	}
	if p.Strategy == "" {
		p.Strategy = strategyFailFast
	}
	if p.InFlight == "" {
		p.InFlight = inFlightConflict
		if p.Strategy == strategyWait {
			p.InFlight = inFlightAttach
		}
	}
	p.Tolerance = DefaultTolerance(p.Scheme)
}

// Decisions that refuse a delivery with a 4xx unless a preset says otherwise. Their names are the contract's.
const (
	inFlight    idem.Decision = "in_flight"
	locked      idem.Decision = "locked"
	waitTimeout idem.Decision = "wait_timeout"
	queueFull   idem.Decision = "queue_full"
	mismatch    idem.Decision = "mismatch"
	unknown     idem.Decision = "unknown"
	unverified  idem.Decision = "unverified"
	rejected    idem.Decision = "rejected"
)

// only5xx is for senders that take a 4xx for final, or may: every refusal is 503. That includes a wrong signature, because a
// delivery that is refused while the secret is configured wrongly should come again.
func only5xx() map[idem.Decision]int {
	return map[idem.Decision]int{inFlight: 503, locked: 503, waitTimeout: 503, queueFull: 503, mismatch: 503, unknown: 503, unverified: 503, rejected: 503}
}
