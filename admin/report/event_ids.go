package report

import (
	"strings"
	"time"

	"hooklock/admin/client"
)

const (
	// constantAfter deliveries in a row with one event ID, of which constantOthers were other
	// requests than the first, are no retries of one event: the ID is the same for all.
	constantAfter  = 10
	constantOthers = 3

	maxEventID = 128 // bytes that are shown
)

// eventIDs tells IDs that name no single event: a placeholder, and one that is the same for all
// deliveries of a route.
type eventIDs struct {
	last        string // of the newest delivery with an ID
	row, others int64  // deliveries with it in a row, and those of them that were other requests
	found       *wrongID
}

type wrongID struct {
	client.WrongEventID
	noted time.Time // by the clock of the tally
}

func (e *eventIDs) noteDelivery(d *Delivery, now moment) {
	if d.EventID == "" {
		return
	}
	if d.EventID != e.last {
		e.last, e.row, e.others = strings.Clone(d.EventID), 0, 0
	}
	e.row++
	if d.isOther() {
		e.others++
	}
	switch {
	case d.Placeholder:
		e.nameWrong(client.IDPlaceholder, now)
	case e.row >= constantAfter && e.others >= constantOthers:
		e.nameWrong(client.IDConstant, now)
	}
}

// nameWrong notes that the newest ID is wrong.
func (e *eventIDs) nameWrong(why string, now moment) {
	shown := strings.ToValidUTF8(e.last[:min(len(e.last), maxEventID)], "")
	if e.found == nil || e.found.EventID != shown || e.found.Why != why {
		e.found = &wrongID{WrongEventID: client.WrongEventID{EventID: shown, Why: why}}
	}
	if e.found.Deliveries++; why == client.IDConstant {
		e.found.Deliveries = e.row
	}
	e.found.At.Time, e.found.noted = now.shown, now.at
}

// foundSince returns what was found, if the newest of it is not older than from.
func (e *eventIDs) foundSince(from time.Time) *client.WrongEventID {
	if e.found == nil || e.found.noted.Before(from) {
		return nil
	}
	shown := e.found.WrongEventID
	return &shown
}
