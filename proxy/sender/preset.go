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

// Preset is the recommended settings of a route for one sender, with its facts. A route may
// override every setting.
//
// A preset does not rely on uncertain facts. It then has the setting that loses no event, which may
// run an event twice, as without Hooklock.
type Preset struct {
	Name    string
	Aliases []string
	// Scheme is verify.scheme. It is "none" if the sender signs nothing that Hooklock can check.
	Scheme string
	// Tolerance is verify.tolerance; 0 means no age check.
	Tolerance time.Duration
	// Methods lists the methods of deliveries. The default is that of a route (POST, PUT, PATCH).
	Methods []string

	// EventID is the event_id template. It is empty if ExtractID reads the ID, because a template
	// cannot.
	EventID string
	// ExtractID returns the event ID. It is nil if EventID is set.
	ExtractID func(d *Delivery) EventID
	// IDHeaders lists the headers that ExtractID reads, for warnings about unsigned IDs.
	IDHeaders []string
	// IDText describes the ID on the page of the sender. The default is EventID.
	IDText string
	// NoID reports whether events have no ID and two events can have the same bytes, so that
	// duplicates cannot be found (idempotency.enabled: false). EventID and ExtractID are then
	// empty.
	NoID      bool
	OnMissing naming.MissingEventID // on_missing_event_id

	// Order is order.by of a route with order: true. It is empty if the sender sends no order that
	// stays the same between attempts, or that is not established.
	Order     string
	OrderUnit idem.OrderUnit // the unit of Order if that is a number

	// Labels are labels of a route, by name: what the sender's own pages call the event's object.
	// Only what its documents name is here.
	Labels map[string]string

	OnMismatch idem.OnMismatch // idempotency.on_mismatch
	InFlight   idem.InFlight   // idempotency.in_flight
	Retention  time.Duration   // idempotency.retention: covers the sender's retries and, if feasible, its manual ones
	// PayloadRetention is idempotency.payload_retention; 0 means the default of a route. It is set
	// if the payload is the key and the sender repeats an event with the same bytes on purpose.
	PayloadRetention time.Duration
	Strategy         idem.Strategy // lock.strategy: FailFast or Wait
	// WaitTimeout is lock.wait_timeout. For fail_fast it is the default, in case the route changes
	// the strategy.
	WaitTimeout time.Duration
	// Facts says what the sender does.
	Facts Facts
	// RetryAfterUnit is the unit of a number in Retry-After for this sender.
	RetryAfterUnit time.Duration
	// Respond replaces the status of refusing decisions.
	Respond map[idem.Decision]int

	// Handshakes lists the handshakes that the service answers; their decision is bypassed.
	Handshakes []Handshake
	// Renewal says whether a signature can be renewed. RenewalOf returns it for a route.
	Renewal Renewal
	// Rule is the handshake that Hooklock answers, as settings of the route. The user sets its
	// Token. The zero value is none.
	Rule HandshakeRule
	// Sources lists the documents that the facts come from.
	Sources []string
	// Notes lists what the page of the sender says beside its facts.
	Notes []string

	// Tried is what the sender was seen to do, if it is a server that was run against Hooklock;
	// else nil.
	Tried *SelfHosted

	// Page is the rest of the page of the sender in docs/senders.
	Page Page

	verify scheme        // zero if Scheme is none
	sample func(*sample) // adds header, body and signature of this sender to a sample
	key    keyKind       // the kind of secret that signs a sample
}

// Page holds the parts of the page of a sender that only the page needs.
type Page struct {
	Title string
	// Path and Workflow belong to the route to copy. The default of Path is /hooks/ and the name.
	Path, Workflow string
	// Verify is the route's verify, by default a secret in a file, and a public URL where that is
	// signed. It is empty if nothing is signed.
	Verify string
	Secret string // what the secret or key file contains, and where the sender shows it
	// SampleID is the event ID of the sample with the event "one". It is empty if the ID is a
	// digest.
	SampleID string
}

// keyKind is the kind of secret that signs a sample. The zero value is a secret of any characters.
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

// Handshake returns the handshake that d matches, or nil.
func (p *Preset) Handshake(d *Delivery) *Handshake {
	for i := range p.Handshakes {
		if p.Handshakes[i].Matches(d) {
			return &p.Handshakes[i]
		}
	}
	return nil
}

// UpstreamTimeout returns the time that is left for the upstream after the longest wait for the
// lock, or 0 if it is unknown. The outcome of an upstream that takes longer is still recorded, and
// the sender's retry gets it.
func (p *Preset) UpstreamTimeout() time.Duration {
	const overhead = 500 * time.Millisecond // network, signature, two transactions
	left := p.Facts.Timeout - overhead
	if p.Strategy == idem.Wait {
		left -= p.WaitTimeout
	}
	return max(left, 0)
}

// listed caches the presets, because a configuration looks one up about ten times for each route.
// They are never modified.
var listed = sync.OnceValue(Presets)

// Lookup returns the preset with a name or alias. The caller must not modify its maps and slices.
func Lookup(name string) (*Preset, bool) {
	all := listed()
	i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name || slices.Contains(p.Aliases, name) })
	if i < 0 {
		return nil, false
	}
	found := all[i]
	return &found, true
}

// known has a method for each sender, in its own file. Its methods are the list of senders; they
// are exported so that reflection finds them.
type known struct{}

// Presets returns new presets, sorted by name.
func Presets() []Preset {
	senders := reflect.ValueOf(known{})
	all := make([]Preset, senders.NumMethod())
	for i := range all {
		all[i] = senders.Method(i).Interface().(func() Preset)()
		all[i].setDefaults()
	}
	slices.SortFunc(all, func(a, b Preset) int { return strings.Compare(a.Name, b.Name) })
	return all
}

const (
	day      = 24 * time.Hour
	minutes5 = 5 * time.Minute
)

// setDefaults sets the defaults.
func (p *Preset) setDefaults() {
	p.Scheme = cmp.Or(p.Scheme, p.Name)
	p.Renewal = max(p.Renewal, p.verify.renewal)
	p.verify.name, p.verify.aliases, p.verify.renewal = p.Scheme, p.Aliases, p.Renewal
	p.IDText = cmp.Or(p.IDText, p.EventID)
	p.OnMissing = cmp.Or(p.OnMissing, naming.MissingPayload)
	p.Retention = cmp.Or(p.Retention, 7*day)
	p.RetryAfterUnit = cmp.Or(p.RetryAfterUnit, time.Second)
	if p.Facts.EventIsLost() { // a refused event should wait instead, or look like a fault that passes
		p.Strategy, p.WaitTimeout = idem.Wait, cmp.Or(p.WaitTimeout, time.Second)
		if p.Respond == nil {
			p.Respond = only5xx()
		}
	}
	p.WaitTimeout = cmp.Or(p.WaitTimeout, 5*time.Second)
	p.Strategy = cmp.Or(p.Strategy, idem.FailFast)
	inFlight := idem.Conflict
	if p.Strategy == idem.Wait {
		inFlight = idem.Attach
	}
	p.InFlight = cmp.Or(p.InFlight, inFlight)
	p.Page.Path = cmp.Or(p.Page.Path, "/hooks/"+p.Name)
	if p.Scheme != noScheme {
		verify := "secret_file: /etc/hooklock/" + p.Name + ".secret"
		if p.verify.coverageOf(Config{}).URL {
			verify += `, public_url: "https://hooks.example.com"`
		}
		p.Page.Verify = cmp.Or(p.Page.Verify, verify)
	}
	p.Tolerance = cmp.Or(p.verify.tolerance, p.Tolerance)
}

// only5xx returns a 503 for every refusal, for senders that may take a 4xx for final. That includes
// a wrong signature: a delivery that is refused because of a wrong secret in the configuration
// should come again.
func only5xx() map[idem.Decision]int {
	respond := map[idem.Decision]int{}
	for _, row := range idem.Decisions() {
		if row.Status >= 400 && row.Status < 500 && !row.Droppable {
			respond[row.Decision] = 503
		}
	}
	return respond
}
