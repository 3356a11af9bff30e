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

// changing is what differs between deliveries of one event ID.
type changing struct {
	client.Changing
	noted time.Time // the newest of them, by the clock of the tally
}

// attempts remembers the parts of deliveries that may come again, and compares those that come
// again as another request.
type attempts struct {
	seen  map[event]attempt
	order []event   // of seen, the oldest first
	found *changing // nil until there is one
}

// event tells events apart: the same ID in another workflow is another event.
type event struct{ workflow, key string }

func (d *Delivery) eventKey() event { return event{d.Workflow, d.Key} }

type attempt struct {
	members []idem.Member
	ran     bool // the others are compared with the one that counts
}

// respelled is the difference if every member is equal.
const respelled = "the order or white space of the body"

// isOther reports whether d is another request than the first delivery of its event.
func (d *Delivery) isOther() bool { return d.Changed || d.Decision == idem.DecisionMismatch }

// noteDelivery remembers d, or compares it. Few deliveries that went well have members.
func (a *attempts) noteDelivery(d *Delivery, now moment) {
	first, known := a.seen[d.eventKey()]
	switch {
	case len(d.Members) == 0:
	case !known:
		a.rememberDelivery(d)
	case d.isOther():
		a.noteDifferences(first, d, now)
	case first.ran && len(idem.Differences(first.members, d.Members)) > 0: // it failed, and came again with other bytes
		a.noteDifferences(first, d, now)
		a.seen[d.eventKey()] = attempt{d.Members, true}
	case !first.ran: // the bytes of the first delivery come after others
		a.noteDifferences(attempt{first.members, true}, d, now)
		a.seen[d.eventKey()] = attempt{d.Members, true}
	}
}

// noteDifferences notes what differs between first and d.
func (a *attempts) noteDifferences(first attempt, d *Delivery, now moment) {
	differ := idem.Differences(first.members, d.Members)
	switch {
	case len(differ) == 0 && !first.ran: // neither is the first delivery, and only that would show it
		return
	case len(differ) == 0:
		differ = []string{respelled}
	}
	if a.found == nil {
		a.found = new(changing)
	}
	c := a.found
	switch {
	case d.Changed:
		c.Replayed++
	case d.isOther():
		c.Refused++
	}
	c.noted, c.At.Time, c.Key = now.at, now.shown, d.Key
	all := slices.Concat(c.Members, differ) // a new list: the old one may be read
	slices.Sort(all)
	all = slices.Compact(all)
	c.Members = all[:min(len(all), maxChanging)]
}

func (a *attempts) rememberDelivery(d *Delivery) {
	if a.seen == nil {
		a.seen = map[event]attempt{}
	}
	if len(a.order) == maxAttempts {
		delete(a.seen, a.order[0])
		a.order = slices.Delete(a.order, 0, 1)
	}
	a.seen[d.eventKey()] = attempt{d.Members, !d.isOther()}
	a.order = append(a.order, d.eventKey())
}

// foundSince returns what was found, if the newest of it is not older than from.
func (a *attempts) foundSince(from time.Time) *client.Changing {
	if a.found == nil || a.found.noted.Before(from) {
		return nil
	}
	c := a.found.Changing
	return &c
}
