package proxy

import (
	"cmp"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/proxy/sender"
)

// Seal is how the deliveries of a route prove that they are the sender's, and which of the sender's requests are no events. The zero
// value checks nothing and knows no handshake.
type Seal struct {
	// Scheme is the verify.scheme; empty means none.
	Scheme string
	// Verifier is nil where Scheme is none.
	Verifier sender.Verifier
	// Preset knows the sender's handshakes; nil without one.
	Preset *sender.Preset
}

// sealed is what a Seal says of one delivery.
type sealed struct {
	broken    *sender.SignatureError // nil: the signature is right, or none is asked for
	handshake *sender.Handshake      // nil: it is an event
}

// inspect looks at a delivery before anything is claimed for it: a forged one takes no lock and burns no event ID. A handshake is no
// way around the signature. Only OPTIONS, which its sender cannot sign and which asks for nothing to be done, is let through without one.
func (s *Seal) inspect(d *sender.Delivery, now time.Time) sealed {
	var found sealed
	if s.Preset != nil {
		found.handshake = s.Preset.Handshake(d)
	}
	if s.Verifier == nil || found.handshake != nil && !found.handshake.Signed && string(d.Method) == "OPTIONS" {
		return found
	}
	found.broken = s.brokenBy(s.Verifier.Verify(d, now))
	return found
}

// brokenBy is what a Verifier's error says; nil for none.
func (s *Seal) brokenBy(err error) *sender.SignatureError {
	var broken *sender.SignatureError
	if err != nil && !errors.As(err, &broken) {
		broken = &sender.SignatureError{Scheme: s.Scheme, Reason: sender.Malformed, Part: "delivery", Detail: err.Error()}
	}
	return broken
}

// refuseUnsigned refuses a delivery whose head says that it is not signed, before its body takes memory. It reports whether it did.
func (d *delivery) refuseUnsigned(ctx *fasthttp.RequestCtx) bool {
	s := &d.route.Seal
	if s.Verifier == nil || d.route.Observe || !d.head.HasBody() || string(d.msg.Method) == "OPTIONS" {
		return false
	}
	d.letter = sender.DeliveryOf(&d.msg)
	broken := s.brokenBy(sender.CheckHead(s.Verifier, &d.letter))
	if broken == nil {
		return false
	}
	hangUp(ctx) // what follows is a body that nobody has read
	d.forged(ctx, broken)
	return true
}

// forged refuses a delivery whose signature is not right.
func (d *delivery) forged(ctx *fasthttp.RequestCtx, broken *sender.SignatureError) {
	d.noteSignature(broken)
	d.report.Err = broken
	d.refuse(ctx, idem.DecisionUnverified, refusal{detail: unverifiedDetail(broken)})
}

func (d *delivery) noteSignature(broken *sender.SignatureError) {
	d.report.Scheme, d.report.Signature = d.route.Seal.Scheme, SignatureValid
	if broken != nil {
		d.report.Signature, d.report.SignaturePart = string(broken.Reason), broken.Part
	}
}

// unseal is the room between desk and name tag. It reports whether the delivery ends here: it is a forgery, or no event at all.
func (d *delivery) unseal(ctx *fasthttp.RequestCtx) (ended bool) {
	s := &d.route.Seal
	if s.Verifier == nil && s.Preset == nil {
		return false
	}
	d.letter = sender.DeliveryOf(&d.msg)
	found := s.inspect(&d.letter, d.h.o.Now())
	if s.Verifier != nil {
		d.noteSignature(found.broken)
	}
	switch {
	case found.broken != nil && d.route.Observe:
		d.bypass(ctx, idem.DecisionUnverified)
	case found.broken != nil:
		d.forged(ctx, found.broken)
	case found.handshake != nil:
		d.bypass(ctx, idem.DecisionExecuted)
	default:
		return false
	}
	return true
}

// SignatureValid is what a Report says of a signature that is right. Otherwise it says the sender.Reason.
const SignatureValid = "valid"

func unverifiedDetail(e *sender.SignatureError) string {
	return cmp.Or(e.Part, "signature") + ": " + e.Detail + "; nothing was executed"
}
