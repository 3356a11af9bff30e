package proxy

import (
	"crypto/rand"
	"encoding/hex"
)

// traceContext is a W3C trace context of version 00 (https://www.w3.org/TR/trace-context/).
type traceContext struct{ text string }

const traceLen = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

func newTrace() traceContext {
	var b [24]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never returns an error
	return traceContext{"00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-00"}
}

// readParent is a sender's traceparent as version 00 spells it; nil where it is none. A later version begins with the same fields, and of its
// flags the one of today is known (section 3.2.4 there). What is returned may be header itself.
func readParent(header []byte) []byte {
	if len(header) < traceLen || !isTrace(header[:traceLen]) {
		return nil
	}
	switch version := string(header[:2]); {
	case version == "00":
		if len(header) > traceLen {
			return nil
		}
		return header
	case version == "ff", len(header) > traceLen && header[traceLen] != '-':
		return nil
	}
	parent := append([]byte("00"), header[2:traceLen-2]...)
	if last := header[traceLen-1]; last >= 'a' && last%2 == 0 || last <= '9' && last%2 == 1 {
		return append(parent, "01"...)
	}
	return append(parent, "00"...)
}

// isTrace reports whether b has the four fields, with IDs that name something.
func isTrace(b []byte) bool {
	for i, c := range b {
		switch {
		case i == 2 || i == 35 || i == 52:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return string(b[3:35]) != "00000000000000000000000000000000" && string(b[36:52]) != "0000000000000000"
}

// String is the traceparent header.
func (t traceContext) String() string { return t.text }

// ID is the trace ID.
func (t traceContext) ID() string { return t.part(3, 35) }

// SpanID is the ID of the span in it.
func (t traceContext) SpanID() string { return t.part(36, 52) }

func (t traceContext) part(from, to int) string {
	if len(t.text) < to {
		return ""
	}
	return t.text[from:to]
}

// beginTrace finds out which trace a delivery belongs to: one that is recorded here, or the sender's.
func (d *delivery) beginTrace() {
	parent := readParent(d.header("traceparent"))
	if d.h.o.Tracer != nil {
		d.report.Trace = d.h.o.Tracer.Begin(&d.report, parent, d.header("tracestate"))
	}
	switch t := d.report.Trace; {
	case t != nil:
		d.trace = traceContext{t.TraceParent()}
		d.report.SpanID = d.trace.SpanID()
	case parent != nil:
		d.trace = traceContext{string(parent)}
	default:
		d.trace = newTrace()
	}
	d.report.TraceID = d.trace.ID()
}

// traceForUpstream is the trace context that goes to the upstream, and whether it takes the place of the sender's.
func (d *delivery) traceForUpstream() (text string, own bool) {
	if d.report.Trace != nil {
		return d.report.Trace.Call(), true
	}
	return d.trace.String(), false
}

// knownMethod is a method without the memory of the request, and one word for all that no standard names: what a sender may choose freely is
// no label.
func knownMethod(m []byte) string {
	for _, known := range methods {
		if string(m) == known {
			return known
		}
	}
	return "_OTHER"
}

var methods = [...]string{"POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"}
