package link

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// version is an etcd release, as golang.org/x/mod/semver spells it: v3.6.14, or v3.7.0-rc.1, which
// comes before v3.7.0.
type version string

// parseVersion reads etcd's version, such as 3.6.14 or 3.7.0-rc.1.
func parseVersion(text string) (version, error) {
	v := "v" + text
	if semver.Canonical(v)+semver.Build(v) != v { // Canonical adds what is missing
		return "", fmt.Errorf("%q is not a version of etcd", text)
	}
	return version(v), nil
}

// isBefore reports whether v is older than the release major.minor.patch.
func (v version) isBefore(major, minor, patch int) bool {
	return semver.Compare(string(v), fmt.Sprintf("v%d.%d.%d", major, minor, patch)) < 0
}

// flaws are errors of etcd that break a promise of Hooklock, with the first releases of 3.5, 3.6
// and 3.7 without them. Everything older than 3.5 has them all.
var flaws = []struct {
	in35, in36, in37 int
	what             string
}{
	{28, 5, 0, "a lease that was revoked can be reported alive"},                       // etcd-io/etcd#20590
	{28, 9, 0, "reads can be stale after a process stood still or the leader changed"}, // etcd-io/etcd#20418, #21378
	{28, 11, 0, "a nested transaction can go past the permissions of a role"},          // CVE-2026-33343
	{33, 14, 1, "a nested transaction is not counted against the space quota"},         // etcd-io/etcd#22140
	{33, 14, 1, "a watch can show keys that the role must not read"},                   // GHSA-xg4h-6gfc-h4m8
}

// NewEnough is the end of every refusal of a version. Upstream announced these releases together.
const NewEnough = "upgrade to 3.7.1, 3.6.14 or 3.5.33, or later ones of these"

// errTooOld: locks in such an etcd are not reliable.
var errTooOld = errors.New("too old to be relied on")

// CheckRelease returns an error for a release whose flaws break a promise of Hooklock: Hooklock
// works with it, most of the time.
func CheckRelease(text string) error {
	v, err := parseVersion(text)
	if err != nil {
		return err
	}
	var known []string
	for _, f := range flaws {
		minor := semver.MajorMinor(string(v))
		if v.isBefore(3, 5, f.in35) || minor == "v3.6" && v.isBefore(3, 6, f.in36) ||
			minor == "v3.7" && v.isBefore(3, 7, f.in37) && f.in37 > 0 {
			known = append(known, f.what)
		}
	}
	switch {
	case len(known) > 0:
		return fmt.Errorf("etcd %s is %w: %s", text, errTooOld, strings.Join(known, "; "))
	case semver.Prerelease(string(v)) != "":
		return fmt.Errorf("etcd %s is not a release; other releases may be unable to read what it writes", text)
	}
	return nil
}
