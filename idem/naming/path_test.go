package naming

import (
	"bytes"
	"strings"
	"testing"
)

func TestTidiesAPath(t *testing.T) {
	for _, tt := range []struct{ sentence, raw, want string }{
		{"a tidy path stays", "/hooks/stripe/acme", "/hooks/stripe/acme"},
		{"the root stays", "/", "/"},
		{"an empty path is the root", "", "/"},
		{"a path without a slash gets one", "hooks", "/hooks"},
		{"slashes that repeat", "//hooks///stripe", "/hooks/stripe"},
		{"a slash at the end", "/hooks/stripe/", "/hooks/stripe"},
		{"many slashes at the end", "/hooks//", "/hooks"},
		{"a dot", "/hooks/./stripe/.", "/hooks/stripe"},
		{"two dots", "/a/../hooks/x/../stripe", "/hooks/stripe"},
		{"two dots at the end", "/hooks/stripe/..", "/hooks"},
		{"two dots above the root", "/../../hooks", "/hooks"},
		{"two dots without a slash", "../hooks", "/hooks"},
		{"three dots are a name", "/.../hooks", "/.../hooks"},
		{"dots in a name", "/a.b/..c", "/a.b/..c"},
		{"encoded letters", "/%68ooks/%53tripe", "/hooks/Stripe"},
		{"encoded slashes", "/hooks%2Fstripe%2f", "/hooks/stripe"},
		{"encoded dots", "/a/%2e%2E/hooks", "/hooks"},
		{"decoded once", "/hooks/%252e%252e", "/hooks/%2e%2e"},
		{"broken escapes stay", "/a%/b%2/c%zz", "/a%/b%2/c%zz"},
		{"parameters", "/hooks;v=1/stripe;jsessionid=2;x", "/hooks/stripe"},
		{"parameters behind dots", "/a/..;/hooks/.;x/stripe", "/hooks/stripe"},
		{"parameters alone", "/;x/hooks/;", "/hooks"},
		{"encoded parameters", "/hooks%3Bv", "/hooks"},
		{"backslashes", `/a\..\hooks\stripe%5C`, "/hooks/stripe"},
		{"a plus stays", "/a+b", "/a+b"},
		{"any byte", "/%00%ff", "/\x00\xff"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			raw := []byte(tt.raw)
			if got := NormalPath(raw, nil); string(got) != tt.want {
				t.Fatalf("%q, want %q", got, tt.want)
			}
			if got := NormalPath(raw, []byte("what was here before, long enough for it")); string(got) != tt.want ||
				string(raw) != tt.raw {
				t.Fatalf("over old memory: %q, want %q; raw is %q", got, tt.want, raw)
			}
		})
	}
}

func FuzzNormalPath(f *testing.F) {
	for _, s := range []string{"/", "", "a/..;x/../%2e%2e/b//", "/hooks/%2573", "///", "/;", "..", "%2F"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		got := string(NormalPath(raw, nil))
		if !bytes.Equal(raw, before) {
			t.Fatalf("%q was changed to %q", before, raw)
		}
		if got[0] != '/' || len(got) > len(raw)+1 {
			t.Fatalf("%q: %q", raw, got)
		}
		for segment := range strings.SplitSeq(got[1:], "/") {
			if got != "/" && (segment == "" || segment == "." || segment == "..") || strings.Contains(segment, ";") {
				t.Fatalf("%q: %q is not tidy", raw, got)
			}
		}
		if again := string(normalizeSegments([]byte(got))); again != got {
			t.Fatalf("%q: %q, tidied again %q", raw, got, again)
		}
	})
}
