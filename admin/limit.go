package admin

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on what clients can take of this process.
const (
	maxBusy      = 512 // requests with a token, or without one where reads need none
	maxPolls     = 256 // of them, those that wait for something
	maxCallbacks = 256

	// A failure costs, and is forgiven as time goes by; with credit used up, one waits.
	credit     = 30 * time.Second
	guessCost  = time.Second            // a wrong token or key: 30 at once, then one a second
	searchCost = 100 * time.Millisecond // an execution that is not there: 300 at once, then ten a second

	maxAddresses = 4096 // that are remembered
)

// places are how many may be inside at one time.
type places chan struct{}

func newPlaces(n int) places { return make(places, n) }

func (r places) enter() bool {
	select {
	case r <- struct{}{}:
		return true
	default:
		return false
	}
}

func (r places) leave() { <-r }

// failures counts wrong tokens and keys by where they come from, so that nobody can try many of them. The zero value with a clock is
// ready. A time for each is all there is to it: of golang.org/x/time/rate it would be one limiter for each address, which a failure that
// was let in could not overdraw, and what to forget would still be decided here.
type failures struct {
	now func() time.Time
	mu  sync.Mutex
	// paid is when all failures of somebody will be forgiven.
	paid map[string]time.Time
}

// tooMany reports whether somebody's credit is used up for now.
func (f *failures) tooMany(who string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paid[who].Sub(f.now()) > credit
}

// note counts one failure.
func (f *failures) note(who string, cost time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if f.paid == nil {
		f.paid = map[string]time.Time{}
	}
	if _, known := f.paid[who]; !known && len(f.paid) >= maxAddresses {
		f.forget(now)
	}
	from := f.paid[who]
	if from.Before(now) {
		from = now
	}
	f.paid[who] = from.Add(cost)
}

// forget drops those who owe nothing, or all, when somebody commands thousands of addresses.
func (f *failures) forget(now time.Time) {
	for who, until := range f.paid {
		if until.Before(now) {
			delete(f.paid, who)
		}
	}
	if len(f.paid) >= maxAddresses {
		clear(f.paid)
	}
}

// network is what one client commands: an IPv4 address, or an IPv6 network of 64 bits.
func network(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := at.Addr().Unmap()
	if ip.Is6() {
		if prefix, err := ip.Prefix(64); err == nil && !ip.IsLoopback() {
			return prefix.String()
		}
	}
	return ip.WithZone("").String()
}
