package proxy

import (
	"crypto/rand"
	"encoding/hex"
)

// traceContext is the sender's W3C trace context, or a new one where it sent none or a broken one
// (https://www.w3.org/TR/trace-context/).
type traceContext struct{ text string }

const traceLen = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

func readTrace(header []byte) traceContext {
	if len(header) == traceLen && validTrace(header) {
		return traceContext{string(header)}
	}
	var b [24]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never returns an error
	return traceContext{"00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-00"}
}

func validTrace(b []byte) bool {
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
	return string(b[:2]) == "00" && string(b[3:35]) != "00000000000000000000000000000000" && string(b[36:52]) != "0000000000000000"
}

// String is the traceparent header.
func (t traceContext) String() string { return t.text }

// ID is the trace ID.
func (t traceContext) ID() string {
	if len(t.text) < 35 {
		return ""
	}
	return t.text[3:35]
}
