package proxy

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTheBeginningOfAFailedAnswerIsReadOnOneLine(t *testing.T) {
	for body, want := range map[string]string{
		"database is locked\n":             "database is locked",
		" {\"error\":\n \"no such user\"}": `{"error": "no such user"}`,
		"<!doctype html><html><head><title>OperationalError at /hooks</title>": "OperationalError at /hooks",
		"<html><body>Internal Server Error":                                    "",
		"\x1f\x8b\x08\x00":                                                     "",
		"":                                                                     "",
		strings.Repeat("ü", 200):                                               strings.Repeat("ü", 80) + "…",
	} {
		if got := readableBeginning([]byte(body)); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}

func FuzzReadableBeginning(f *testing.F) {
	f.Add([]byte("<title>x</title>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := readableBeginning(body)
		if len(got) > readableMost+len("…") || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\t\x00\x7f") {
			t.Errorf("%q", got)
		}
	})
}
