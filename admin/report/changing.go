package report

import (
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

const (
	maxAttempts = 64 // events of a route whose attempts are remembered
	maxChanging = 32 // members that are named
)

// changing is what a sender changes between attempts of one event, so that later ones count as other requests.
type changing struct {
	client.Changing
	noted time.Time // the newest of them, by the clock of the tally
}

// attempts remembers the parts of deliveries that may come again, and compares those that come again as another request.
type attempts struct {
	seen  map[string]attempt // by key
	order []string           // of seen, the oldest first
	found *changing          // nil until there is one
}

type attempt struct {
	members []idem.Member
	ran     bool // the others are compared with the one that counts
}

// respelled is the difference if every member is equal.
const respelled = "the order or white space of the body"

// note remembers d, or compares it. Only deliveries that went wrong have members.
func (a *attempts) note(d *Delivery, now moment) {
	if len(d.Members) == 0 {
		return
	}
	first, known := a.seen[d.Key]
	if !known {
		a.remember(d)
		return
	}
	if d.Decision != idem.DecisionMismatch {
		return
	}
	differ := idem.Differences(first.members, d.Members)
	switch {
	case len(differ) == 0 && !first.ran: // both were refused, and only the first one would show it
		return
	case len(differ) == 0:
		differ = []string{respelled}
	}
	if a.found == nil {
		a.found = new(changing)
	}
	c := a.found
	c.Refused++
	c.noted, c.At.Time, c.Key = now.at, now.shown, d.Key
	all := slices.Concat(c.Members, differ) // a new list: the old one may be read
	slices.Sort(all)
	all = slices.Compact(all)
	c.Members = all[:min(len(all), maxChanging)]
}

func (a *attempts) remember(d *Delivery) {
	if a.seen == nil {
		a.seen = map[string]attempt{}
	}
	if len(a.order) == maxAttempts {
		delete(a.seen, a.order[0])
		a.order = slices.Delete(a.order, 0, 1)
	}
	a.seen[d.Key] = attempt{d.Members, d.Decision != idem.DecisionMismatch}
	a.order = append(a.order, d.Key)
}

// since returns what was found, if the newest of it is not older than from.
func (a *attempts) since(from time.Time) *client.Changing {
	if a.found == nil || a.found.noted.Before(from) {
		return nil
	}
	c := a.found.Changing
	return &c
}
