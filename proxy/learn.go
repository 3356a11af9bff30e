package proxy

import (
	"hash/maphash"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/suggest"
	"hooklock/proxy/wire"
)

// recordForSuggest gives the delivery to what suggests keys, unless it says nothing about the
// events of its sender: a forged one, a handshake, one that did not come whole, and without a route
// what the service does not know.
func (d *delivery) recordForSuggest() {
	learner := d.handler.options.Recorder
	if learner == nil || d.accepted && d.early == nil || !d.isEvent() {
		return
	}
	found := suggest.Delivery{At: d.report.Started, Took: d.report.Total, Status: d.report.Status, Left: d.left,
		Message: &d.req.msg}
	event := ""
	switch {
	case d.route == nil && d.tap != nil:
		if !d.tap.whole.Load() {
			return
		}
		found.Sum, found.Long, d.req.msg.Body = d.tap.sum.Sum64(), d.tap.long, d.tap.kept
	case d.route != nil:
		found.Route, found.Path = d.route.Name, d.route.Pattern.String()
		if d.names.EventID != "" {
			event = string(d.names.Key)
		}
		if len(d.req.body) > naming.MaxVisited {
			sum := learner.Hasher(d.req.msg.Query)
			_, _ = sum.Write(d.req.body)
			found.Sum, found.Long, d.req.msg.Body = sum.Sum64(), true, nil
		}
		if d.accepted {
			found.Status = d.route.parkedStatus()
		}
	}
	learner.Learn(&found, event)
}

// soon is how long no sender gives up an answer. A look at the connection of each delivery would
// cost more than what is learned from it.
const soon = 100 * time.Millisecond

// noteLeft notes whether the sender has gone before its answer is written: it has a reason to send
// the event again, whatever the answer is.
func (d *delivery) noteLeft(sender net.Conn) {
	o := &d.handler.options
	d.left = o.Recorder != nil && !d.accepted && o.Now().Sub(d.report.Started) >= soon && wire.PeerLeft(sender)
}

// isEvent reports whether the delivery may be an event of a sender.
func (d *delivery) isEvent() bool {
	r := &d.report
	switch {
	case len(d.req.msg.Method) == 0, r.Decision == idem.DecisionInternalError, r.Challenged:
		return false
	case d.route != nil:
		handshake := r.UnsignedHandshake || r.Decision == idem.DecisionAnswered || r.Would == idem.DecisionAnswered
		return d.req.whole && !handshake && (r.Verified || d.route.Observe)
	case r.Decision == idem.DecisionRejected, d.req.head.Upgrade() != nil, r.Status == 404, r.Status == 405:
		return false
	}
	return d.tap != nil || !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method)
}

// bodyTap keeps a body that passes through, up to naming.MaxVisited, and its hash. Its fields are
// read after whole.
type bodyTap struct {
	sum    maphash.Hash
	kept   []byte
	long   bool // kept is empty, because it would be longer
	left   int64
	whole  atomic.Bool
	memory *wire.Account
}

// tapBody returns what keeps a body of this length, -1 for one that ends itself; nil if nothing
// learns from it.
func (p passage) tapBody(length int64) *bodyTap {
	learner := p.handler.options.Recorder
	if learner == nil {
		return nil
	}
	p.tap = &bodyTap{sum: learner.Hasher(p.req.msg.Query), left: length, memory: &p.memory}
	if length > naming.MaxVisited || !p.memory.Take(int(max(length, 0))) {
		p.tap.long = true
	} else if length > 0 {
		p.tap.kept = make([]byte, 0, length)
	}
	return p.tap
}

// noteRead keeps what a read has brought.
func (t *bodyTap) noteRead(part []byte, err error) {
	if t == nil || t.whole.Load() {
		return
	}
	_, _ = t.sum.Write(part)
	t.left -= int64(len(part))
	if free := cap(t.kept) - len(t.kept); !t.long && len(part) > free &&
		(len(t.kept)+len(part) > naming.MaxVisited || !t.memory.Take(2*len(part)+cap(t.kept))) {
		t.long, t.kept = true, nil
	}
	if !t.long {
		t.kept = append(t.kept, part...)
	}
	if err == io.EOF || err == nil && t.left == 0 {
		t.whole.Store(true)
	}
}
