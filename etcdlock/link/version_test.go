package link

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

// Debian and others still package 3.4 and 3.5. Installing those here would test their packages;
// what matters is what is concluded from the version that a member tells.
func TestReleasesThatBreakAPromiseAreRefusedWithTheReason(t *testing.T) {
	for _, c := range []struct {
		version string
		says    string // "" = good enough
	}{
		{"3.4.42", "lease that was revoked"},
		{"3.5.27", "reads can be stale"},
		{"3.5.28", "a watch can show keys"},
		{"3.5.32", "not counted against the space quota"},
		{"3.5.33", ""},
		{"3.5.35", ""},
		{"3.6.0", "lease that was revoked"},
		{"3.6.4", "lease that was revoked"},
		{"3.6.8", "reads can be stale"},
		{"3.6.10", "past the permissions of a role"},
		{"3.6.13", "a watch can show keys"},
		{"3.6.14", ""},
		{"3.6.16", ""},
		{"3.7.0", "a watch can show keys"},
		{"3.7.1", ""},
		{"3.7.3", ""},
		{"3.7.3+distro1", ""},
		{"3.8.0", ""},
		{"4.0.0", ""},
		{"2.3.8", "lease that was revoked"},
		{"3.6.14-rc.0", "a watch can show keys"},
		{"3.7.0-rc.0", "a watch can show keys"},
		{"3.7.1-rc.0", "a watch can show keys"},
		{"3.8.0-rc.0", "is not a release"},
		{"3.6.0-alpha.0", "lease that was revoked"},
		{"", "is not a version"},
		{"3.6", "is not a version"},
		{"3.6.x", "is not a version"},
		{"3.-6.1", "is not a version"},
		{"latest", "is not a version"},
	} {
		err := CheckRelease(c.version)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.version, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: got %v, want %q", c.version, err, c.says)
		}
	}
}

func TestARefusalNamesOnlyTheErrorsOfThatRelease(t *testing.T) {
	err := CheckRelease("3.6.11")
	if !errors.Is(err, errTooOld) || strings.Contains(err.Error(), "stale") ||
		!strings.Contains(err.Error(), "space quota") {
		t.Errorf("got %v", err)
	}
}

func FuzzVersion(f *testing.F) {
	for _, seed := range []string{"3.7.3", "3.6.0-rc.1+x", "..", "99999999999.1.1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseVersion(text)
		if err != nil && v != "" {
			t.Fatalf("%q: %v beside an error", text, v)
		}
		if err == nil && v.isBefore(0, 0, 0) && semver.Prerelease(string(v)) == "" {
			t.Fatalf("%q is before everything", text)
		}
	})
}
