package proxy

import (
	"cmp"
	"errors"
	"time"

	"hooklock/idem"
	"hooklock/proxy/sender"
)

// Verification is how a route tells that a delivery comes from its sender, and which requests of
// the sender are no events. The zero value checks nothing and knows no handshake.
type Verification struct {
	Scheme string // Scheme is the setting verify.scheme. "" is none.
	// Verifier is nil if Scheme is none.
	Verifier sender.Verifier
	// Preset knows the sender's handshakes. nil if the route names none.
	Preset *sender.Preset
	// Diagnose explains to an operator why a signature is not accepted. nil if nothing more is
	// known.
	Diagnose func(d *sender.Delivery, now time.Time) []string
	// Handshake is the one that the configuration describes. nil if there is none.
	Handshake *sender.RuledHandshake
}

// inspected is the result of a Verification of one delivery.
type inspected struct {
	broken    *sender.SignatureError // nil: the signature is right, or none is needed
	handshake *sender.Handshake      // nil: it is an event
	// answer is that of a handshake which is answered here; nil: it is none, or the upstream
	// answers it.
	answer *sender.HandshakeAnswer
	// unsigned: a handshake that comes without a signature, so that nothing was checked but its
	// token.
	unsigned bool
	// answeredHere: a handshake that the upstream does not get, whether it is in order or not.
	answeredHere bool
}

// inspectDelivery checks a delivery before anything is claimed for it: a forged one takes no lock
// and uses up no event ID. A handshake does not bypass the signature. Only OPTIONS, which its
// sender cannot sign and which has no effect, is let through without one.
func (v *Verification) inspectDelivery(d *sender.Delivery, now time.Time) inspected {
	if v.Handshake != nil && v.Handshake.Matches(d) {
		return v.inspectRuled(d, now)
	}
	var found inspected
	if v.Preset != nil {
		found.handshake = v.Preset.Handshake(d)
	}
	found.unsigned = found.handshake != nil && !found.handshake.Signed &&
		(v.Verifier == nil || string(d.Method) == "OPTIONS")
	if v.Verifier == nil || found.unsigned {
		return found
	}
	found.broken = v.brokenBy(v.Verifier.Verify(d, now))
	return found
}

// inspectRuled checks a handshake of the configuration. One without a signature is not passed on.
func (v *Verification) inspectRuled(d *sender.Delivery, now time.Time) inspected {
	found := inspected{handshake: &v.Handshake.Handshake, unsigned: !v.Handshake.Signed,
		answeredHere: v.Handshake.Answer != nil}
	if v.Verifier != nil && v.Handshake.Signed {
		found.broken = v.brokenBy(v.Verifier.Verify(d, now))
	}
	switch {
	case found.broken != nil:
		return found
	case v.Handshake.Answer == nil:
		found.broken = v.brokenBy(v.Handshake.CheckToken(d))
		return found
	}
	answer, err := v.Handshake.Answer(d)
	found.answer, found.broken = answer, v.brokenBy(err)
	return found
}

// isHandshake reports whether a delivery with a method that the route does not take is the
// handshake of its sender.
func (v *Verification) isHandshake(q *question) bool {
	if v.Handshake == nil || v.Handshake.Method != string(q.method) || !q.bare {
		return false
	}
	d := sender.DeliveryOf(q.msg)
	return v.Handshake.Matches(&d)
}

// brokenBy returns a Verifier's error; nil for none.
func (v *Verification) brokenBy(err error) *sender.SignatureError {
	broken, ok := errors.AsType[*sender.SignatureError](err)
	if err != nil && !ok {
		broken = &sender.SignatureError{Scheme: v.Scheme, Reason: sender.Malformed, Part: "delivery",
			Detail: err.Error()}
	}
	return broken
}

// checkHead returns why a delivery is not signed whose head shows that before its body is read; nil
// if it may be signed.
func (v *Verification) checkHead(q *request) *sender.SignatureError {
	if v.Verifier == nil || !q.head.HasBody() || string(q.msg.Method) == "OPTIONS" ||
		v.Handshake != nil && v.Handshake.MayCome(q.asSigned()) {
		return nil
	}
	return v.brokenBy(sender.CheckHead(v.Verifier, q.asSigned()))
}

// endForged returns the ending of a delivery whose signature is not right.
func (d *delivery) endForged(broken *sender.SignatureError) *ending {
	d.report.noteSignature(d.route.Verify.Scheme, broken)
	d.signature = broken
	end := d.refuseWith(idem.DecisionUnverified)
	end.err, end.refusal.detail = broken, cmp.Or(broken.Part, "signature")+": "+broken.Detail+"; nothing was executed"
	return end
}

// verifySignature checks the signature, and finds out whether the delivery is an event at all.
func (d *delivery) verifySignature() *ending {
	v := &d.route.Verify
	if v.Verifier == nil && v.Preset == nil && v.Handshake == nil {
		return nil
	}
	found := v.inspectDelivery(d.req.asSigned(), d.handler.options.Now())
	switch {
	case found.broken != nil:
		return d.endForged(found.broken).withForward(forwardByRule)
	case found.unsigned:
		d.report.UnsignedHandshake, d.report.Verified = true, false
	case v.Verifier != nil:
		d.report.noteSignature(v.Scheme, nil)
	}
	if found.handshake == nil {
		return nil
	}
	if found.answer != nil {
		d.end = ending{decision: idem.DecisionAnswered, source: fromRule, forward: forwardByRule,
			greeting: found.answer}
		return &d.end
	}
	return d.refuseWith(idem.DecisionExecuted).withForward(forwardAlways)
}
