package sender

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
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
	IDText string
	// NoID: nothing names an event, and two events can have the same bytes, so that duplicates are not looked for
	// (idempotency.enabled: false). EventID and ExtractID are then empty.
	NoID      bool
	OnMissing naming.MissingEventID // on_missing_event_id

	// Order is the order.by of a route with order: true: what the sender does not change between attempts. Empty: it sends nothing of the kind, or that is
	// not established.
	Order     string
	OrderUnit idem.OrderUnit // of Order, where that is a number

	OnMismatch idem.OnMismatch // idempotency.on_mismatch
	InFlight   idem.InFlight   // idempotency.in_flight
	Retention  time.Duration   // idempotency.retention: over the sender's retries, and where that is feasible its manual ones
	Strategy   idem.Strategy   // lock.strategy: FailFast or Wait
	// WaitTimeout is the lock.wait_timeout; for fail_fast the default, in case the route changes the strategy.
	WaitTimeout time.Duration
	// Facts is what the sender does, which no route can change.
	Facts Facts
	// RetryAfterUnit is what a number in Retry-After means to this sender.
	RetryAfterUnit time.Duration
	// Respond overrides the status of refusing decisions.
	Respond map[idem.Decision]int

	// Handshakes pass through as bypassed.
	Handshakes []Handshake
	// Renewal is what becomes of a signature that has grown too old. RenewalOf says it for a route.
	Renewal Renewal
	// Rule is a handshake that is answered here, as settings of the route; its Token is the user's. The zero value is none.
	Rule HandshakeRule
	// Sources says where the facts come from.
	Sources []string
	// Notes are what a user must know: what is promised, what cannot be, which facts were too weak to rely on.
	Notes []string

	// Page is what its page in docs/senders says beside all this.
	Page Page

	verify scheme              // zero where Scheme is none
	sample func(*sample) error // adds header, body and signature to a delivery as this sender makes it; the bodies are ours
	key    keyKind             // what a sample is signed with
}

// Page is what the page of a sender shows that no delivery needs.
type Page struct {
	Title string
	// Path and Workflow are those of the route to copy.
	Path, Workflow string
	// Verify is the rest of the route's verify; empty where nothing is signed.
	Verify string
	Secret string // what goes into the secret or key file, and where the sender shows it
	// SampleID is the event ID of the sample with the event "one", as the route names it; empty where it is a digest.
	SampleID string
}

// keyKind says what a sender's samples are signed with. The zero value is a secret of any characters.
type keyKind uint8

const (
	keySecret  keyKind = iota
	keyHex             // a secret in hex
	keyWhsec           // whsec_ and base64
	keyBase64          // a secret in base64
	keyECDSA           // a private key on P-256
	keyEd25519         // a private key
	keyRSA             // a private key
)

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
	left := p.Facts.Patience - overhead
	if p.Strategy == idem.Wait {
		left -= p.WaitTimeout
	}
	return max(left, 0)
}

// listed are the presets, made once: a configuration of many routes asks for one some ten times for each of them. They are never changed.
var listed = sync.OnceValue(Presets)

// Lookup finds a preset by its name or alias. What it holds in maps and lists is everybody's.
func Lookup(name string) (*Preset, bool) {
	all := listed()
	i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name || slices.Contains(p.Aliases, name) })
	if i < 0 {
		return nil, false
	}
	found := all[i]
	return &found, true
}

// known has a method for each sender, in a file of its own: that is all the list there is, so that nobody who adds one has to name it twice.
// The methods are exported because reflection sees no others.
type known struct{}

// Presets lists the presets by name. The slice is the caller's.
func Presets() []Preset {
	senders := reflect.ValueOf(known{})
	all := make([]Preset, senders.NumMethod())
	for i := range all {
		all[i] = senders.Method(i).Interface().(func() Preset)()
		all[i].fill()
	}
	slices.SortFunc(all, func(a, b Preset) int { return strings.Compare(a.Name, b.Name) })
	return all
}

const (
	day      = 24 * time.Hour
	minutes5 = 5 * time.Minute
)

// fill sets what most presets have in common.
func (p *Preset) fill() {
	if p.Scheme == "" {
		p.Scheme = p.Name
	}
	p.Renewal = max(p.Renewal, p.verify.renewal)
	p.verify.name, p.verify.aliases, p.verify.renewal = p.Scheme, p.Aliases, p.Renewal
	if p.IDText == "" {
		p.IDText = p.EventID
	}
	if p.OnMissing == "" {
		p.OnMissing = naming.MissingPayload
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
		p.Strategy = idem.FailFast
	}
	if p.InFlight == "" {
		p.InFlight = idem.Conflict
		if p.Strategy == idem.Wait {
			p.InFlight = idem.Attach
		}
	}
	p.Tolerance = cmp.Or(p.verify.tolerance, p.Tolerance)
}

// only5xx is for senders that take a 4xx for final, or may: every refusal is 503. That includes a wrong signature, because a
// delivery that is refused while the secret is configured wrongly should come again.
func only5xx() map[idem.Decision]int {
	respond := map[idem.Decision]int{}
	for _, row := range idem.Decisions() {
		if row.Status >= 400 && row.Status < 500 && !row.Droppable {
			respond[row.Decision] = 503
		}
	}
	return respond
}
