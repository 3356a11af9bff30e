package admin

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on the use of this process by clients.
const (
	maxBusy      = 512 // requests with a token, or without one where reads need none
	maxPolls     = 256 // of them, those that wait for something
	maxPollsEach = 64  // of them, those of one token
	maxCallbacks = 256

	// A failure costs credit, which comes back with time; a client without credit has to wait.
	credit     = 30 * time.Second
	guessCost  = time.Second            // a wrong token or key: 30 at once, then one a second
	searchCost = 100 * time.Millisecond // an execution that does not exist: 300 at once, then ten a second

	maxAddresses = 4096 // that are remembered
)

// places bounds how many may run at one time.
type places chan struct{}

func (r places) tryEnter() bool {
	select {
	case r <- struct{}{}:
		return true
	default:
		return false
	}
}

func (r places) leave() { <-r }

// shares are places of which one client may have some only, by its name. A client without a name
// may have all.
type shares struct {
	mu        sync.Mutex
	all, each int // free places, and the most of one client
	of        map[string]int
}

func newShares(all, each int) *shares { return &shares{all: all, each: each, of: map[string]int{}} }

func (s *shares) tryEnter(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == 0 || name != "" && s.of[name] == s.each {
		return false
	}
	s.all--
	s.of[name]++
	return true
}

func (s *shares) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	if s.of[name]--; s.of[name] == 0 {
		delete(s.of, name)
	}
}

// failures counts wrong tokens and keys by their origin, so that a client cannot try many of them.
// The zero value with a clock is ready. It needs one time for each origin: golang.org/x/time/rate
// would need one limiter for each address, which a failure that was let in could not overdraw, and
// what to forget would still be decided here.
type failures struct {
	now func() time.Time
	mu  sync.Mutex
	// paid is when all failures of an origin will be forgiven.
	paid map[string]time.Time
}

// tooMany reports whether the credit of an origin is used up for now.
func (f *failures) tooMany(who string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paid[who].Sub(f.now()) > credit
}

// addFailure counts one failure.
func (f *failures) addFailure(who string, cost time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if f.paid == nil {
		f.paid = map[string]time.Time{}
	}
	if _, known := f.paid[who]; !known && len(f.paid) >= maxAddresses {
		f.dropSettled(now)
	}
	from := f.paid[who]
	if from.Before(now) {
		from = now
	}
	f.paid[who] = from.Add(cost)
}

// dropSettled drops the origins that owe nothing, or all, if a client has thousands of addresses.
func (f *failures) dropSettled(now time.Time) {
	for who, until := range f.paid {
		if until.Before(now) {
			delete(f.paid, who)
		}
	}
	if len(f.paid) >= maxAddresses {
		clear(f.paid)
	}
}

// networkOf returns the network that one client controls: an IPv4 address, or an IPv6 network of 64
// bits.
func networkOf(remote string) string {
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
