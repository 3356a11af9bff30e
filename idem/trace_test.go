package idem

import (
	"strings"
	"testing"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

func TestASendersTraceContextIsReadByItsFirstFields(t *testing.T) {
	ids := "-" + traceID + "-" + spanID + "-"
	for header, want := range map[string]string{
		"00" + ids + "01":       "00" + ids + "01",
		"00" + ids + "00":       "00" + ids + "00",
		"00" + ids + "03":       "00" + ids + "03",
		"00" + ids + "01-more":  "",
		"01" + ids + "01":       "00" + ids + "01",
		"01" + ids + "01-":      "00" + ids + "01",
		"cc" + ids + "ff-what?": "00" + ids + "01",
		"cc" + ids + "fe-later": "00" + ids + "00",
		"01" + ids + "01more":   "",
		"01" + ids + "0":        "",
		"ff" + ids + "01":       "",
		"0G" + ids + "01":       "",
		"":                      "",
		"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01":      "",
		"01-" + traceID + "-" + strings.Repeat("0", 16) + "-01":     "",
		"00-" + strings.ToUpper(traceID) + "-" + spanID + "-01":     "",
		"00_" + traceID + "-" + spanID + "-01":                      "",
		"01-" + traceID + "-" + spanID + "-0a":                      "00" + ids + "00",
		"01-" + traceID + "-" + spanID + "-0b-" + traceID + "-what": "00" + ids + "01",
	} {
		if got := ParseTrace(header).String(); got != want {
			t.Errorf("%q is read as %q, want %q", header, got, want)
		}
	}
}

// What is read is a context of version 00 that is read as itself, with the IDs of the header.
func FuzzParseTrace(f *testing.F) {
	f.Add([]byte("00-" + traceID + "-" + spanID + "-01"))
	f.Add([]byte("01-" + traceID + "-" + spanID + "-ff-and-more"))
	f.Fuzz(func(t *testing.T, header []byte) {
		read := ParseTrace(header)
		if read == (TraceContext{}) {
			return
		}
		parent := read.String()
		if len(parent) != traceLen || parent[:3] != "00-" || parent[3:52] != string(header[3:52]) {
			t.Errorf("%q is read as %q", header, parent)
		}
		if again := ParseTrace(parent); again != read {
			t.Errorf("%q, read again, is %q", parent, again)
		}
	})
}
