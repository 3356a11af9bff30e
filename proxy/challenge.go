package proxy

import (
	"bytes"
	"slices"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// isChallenge reports whether an answer asks the sender for credentials that its request did not
// bring (RFC 9110 section 11.6.1), or brought under a challenge that has become stale (RFC 7616
// section 3.3). The sender answers with its next request. An answer that refuses credentials is
// none, and the request has failed.
func isChallenge(q *request, answer *wire.Answer) bool {
	if answer.Status != 401 {
		return false
	}
	challenged, stale := false, false
	for _, f := range answer.Fields {
		if bytes.EqualFold(f.Name, []byte("www-authenticate")) {
			challenged, stale = true, stale || saysStale(f.Value)
		}
	}
	return challenged && (stale || !q.hasCredentials())
}

// saysStale reports whether a WWW-Authenticate of the scheme Digest has the parameter stale=true,
// which may be quoted.
func saysStale(value []byte) bool {
	value = bytes.ToLower(bytes.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '"' {
			return -1
		}
		return r
	}, value))
	return bytes.Contains(value, []byte("stale=true"))
}

// hasCredentials reports whether the request brings credentials for the service.
func (q *request) hasCredentials() bool {
	return slices.ContainsFunc(q.head.Fields(), func(f wire.Field) bool {
		return bytes.EqualFold(f.Name, []byte("authorization"))
	})
}

// letAskForChallenge lets a request without body and without credentials pass to a service that
// uses Digest: it is no event. Some senders, such as curl, send the event only after the challenge.
func (d *delivery) letAskForChallenge() *ending {
	if !d.route.asksForChallenge(&d.req) {
		return nil
	}
	d.report.UnsignedHandshake = true
	return d.refuseWith(idem.DecisionExecuted).withForward(forwardAlways)
}

// asksForChallenge reports whether a request is no event, but asks the service for its challenge.
func (r *Route) asksForChallenge(q *request) bool {
	return r.Digest && len(q.body) == 0 && !q.hasCredentials()
}

// noteChallenge notes whether the answer to a delivery without a lock is a challenge.
func (d *delivery) noteChallenge() {
	d.report.Challenged = isChallenge(&d.req, &d.call.answer)
	if d.route.asksForChallenge(&d.req) && !d.report.Challenged {
		d.handler.options.Log.Warn("challenge.missing", "route", d.route.Name, "status", d.call.answer.Status,
			"trace_id", d.trace.TraceID(), "advice", adviceDigest)
	}
}

const adviceDigest = "a request without body and without Authorization passed without a lock, and the service did " +
	"not ask for credentials: " +
	"remove digest from the route, or repair the service"
