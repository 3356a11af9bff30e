package idem

import (
	"crypto/rand"
	"encoding/hex"
)

// TraceContext names a span of a trace, as a W3C traceparent does
// (https://www.w3.org/TR/trace-context/). The zero value names none.
type TraceContext struct {
	Trace [16]byte // of the whole trace
	Span  [8]byte  // of the span in that trace
	Flags byte     // the last bit: its spans are recorded
}

// traceLen is the length of a traceparent of version 00.
const traceLen = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// NewTrace makes a trace that is not recorded.
func NewTrace() TraceContext {
	var t TraceContext
	_, _ = rand.Read(t.Trace[:]) // crypto/rand.Read never returns an error
	_, _ = rand.Read(t.Span[:])
	return t
}

// ParseTrace reads a traceparent; the zero value for a text that is none. A later version begins
// with the same fields, and of its flags only today's one is read (section 3.2.4 there).
func ParseTrace[T string | []byte](header T) TraceContext {
	if len(header) < traceLen || header[2] != '-' || header[35] != '-' || header[52] != '-' {
		return TraceContext{}
	}
	var t TraceContext
	var version, flags [1]byte
	if !decodeLowerHex(version[:], header[:2]) || !decodeLowerHex(t.Trace[:], header[3:35]) ||
		!decodeLowerHex(t.Span[:], header[36:52]) ||
		!decodeLowerHex(flags[:], header[53:traceLen]) {
		return TraceContext{}
	}
	t.Flags = flags[0]
	later := version[0] > 0
	switch {
	case t.Trace == [16]byte{}, t.Span == [8]byte{}, version[0] == 0xff, len(header) > traceLen &&
		(!later || header[traceLen] != '-'):
		return TraceContext{}
	case later:
		t.Flags &= 1
	}
	return t
}

// decodeLowerHex accepts lower case alone, as the standard does.
func decodeLowerHex[T string | []byte](into []byte, text T) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return false
		}
		into[i/2] = into[i/2]<<4 | c
	}
	return true
}

// String returns the traceparent, of version 00; "" for none.
func (t TraceContext) String() string {
	if t == (TraceContext{}) {
		return ""
	}
	text := [traceLen]byte{0: '0', 1: '0', 2: '-', 35: '-', 52: '-'}
	hex.Encode(text[3:], t.Trace[:])
	hex.Encode(text[36:], t.Span[:])
	hex.Encode(text[53:], []byte{t.Flags})
	return string(text[:])
}

// TraceID returns the ID of the trace in hex, as log lines and the API have it; "" for none.
func (t TraceContext) TraceID() string {
	if t == (TraceContext{}) {
		return ""
	}
	return hex.EncodeToString(t.Trace[:])
}

// SpanID returns the ID of the span in hex; "" for none.
func (t TraceContext) SpanID() string {
	if t == (TraceContext{}) {
		return ""
	}
	return hex.EncodeToString(t.Span[:])
}
