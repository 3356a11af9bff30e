package wire

import (
	"bytes"
	"time"
)

// Answer is what the upstream answered. The zero value is ready; one that is used again keeps its
// memory. Everything in it belongs to it and is valid until the next exchange into it.
type Answer struct {
	Status int
	Reason []byte  // as received, may be empty
	Fields []Field // as received: order, spelling, duplicates; hop-by-hop ones too
	Body   []byte  // the whole body, or its first bytes where Rest is not nil
	Whole  bool    // the body was read to its true end
	Length int64   // bytes of the body as declared, of a HEAD answer too; -1 where only its end will tell

	// Memory pays for what is read into memory here: Body, and the part of a request's body that
	// Stream reads before it sends it. It is the caller's, and stays when the Answer is used again.
	// Nil: there is no bound.
	Memory *Account

	// Over is when the exchange was over whose connection is used again; zero for another one.
	Over time.Time

	// Rest delivers what follows Body; nil where nothing does. It must be closed.
	Rest *Rest
	// Evidence is how far the exchange had come when Send, Stream or Upgrade returned.
	Evidence Evidence
	// Resent reports that a connection turned out to be dead and the request, of which the peer
	// provably had no byte, went out on a second one.
	Resent bool
	// RequestPending reports (of Stream) that the answer began before the sender's body had been
	// read to its end. The sender's connection is then in the middle of a message: close it behind
	// the answer.
	RequestPending bool

	head []byte // status line and header as received
	ends []int  // where its lines end

	gathered []byte // the part of a request's body that Stream read before it sent it

	exchange *exchange // that brings it; used again
}

func (a *Answer) reset() {
	*a = Answer{Fields: a.Fields[:0], Body: a.Body[:0], head: a.head[:0], ends: a.ends[:0], gathered: a.gathered[:0],
		Memory: a.Memory, exchange: a.exchange}
}

// Room returns how many bytes of memory a keeps for its next use.
func (a *Answer) Room() int { return max(cap(a.Body), cap(a.gathered)) }

// EndToEnd appends the fields that are for the sender to dst: all but the hop-by-hop ones, those
// that Connection lists, and the framing (Content-Length, Transfer-Encoding). Their slices belong
// to a.
func (a *Answer) EndToEnd(dst []Field) []Field {
	for _, f := range a.Fields {
		if !isHopByHop(f.Name) && !a.connectionLists(f.Name) {
			dst = append(dst, f)
		}
	}
	return dst
}

// connectionLists reports whether a Connection field names name.
func (a *Answer) connectionLists(name []byte) bool {
	for _, f := range a.Fields {
		if !equalFold(f.Name, "connection") {
			continue
		}
		for list := f.Value; len(list) > 0; {
			var element []byte
			if element, list = nextListed(list); bytes.EqualFold(element, name) {
				return true
			}
		}
	}
	return false
}

// Get returns the value of the first field of that name, which is given in lower case; nil without
// one.
func (a *Answer) Get(name string) []byte { return fieldValue(a.Fields, name) }
