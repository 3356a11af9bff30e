package admin

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on what clients can take of this process.
const (
	maxBusy  = 512 // requests under way
	maxPolls = 256 // of them, those that wait for something

	failureBurst = 30          // wrong tokens or keys of one address, at once
	failureEvery = time.Second // then one more per
	maxAddresses = 4096        // that are remembered
)

// room lets in as many as it has places.
type room chan struct{}

func newRoom(places int) room { return make(room, places) }

func (r room) enter() bool {
	select {
	case r <- struct{}{}:
		return true
	default:
		return false
	}
}

func (r room) leave() { <-r }

// failures counts wrong tokens and keys by where they come from, so that nobody can try many of them. The zero value with a clock is
// ready.
type failures struct {
	now func() time.Time
	mu  sync.Mutex
	// paid is when the failures of an address will be forgotten: each adds failureEvery.
	paid map[string]time.Time
}

// tooMany reports whether an address has used up its failures for now.
func (f *failures) tooMany(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paid[address].Sub(f.now()) > failureBurst*failureEvery
}

// note counts one failure.
func (f *failures) note(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if f.paid == nil {
		f.paid = map[string]time.Time{}
	}
	if _, known := f.paid[address]; !known && len(f.paid) >= maxAddresses {
		f.forget(now)
	}
	from := f.paid[address]
	if from.Before(now) {
		from = now
	}
	f.paid[address] = from.Add(failureEvery)
}

// forget drops the addresses that have no failures left to forget, or all, when somebody commands thousands of addresses.
func (f *failures) forget(now time.Time) {
	for address, until := range f.paid {
		if until.Before(now) {
			delete(f.paid, address)
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
