package idem

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Part is one of the things that a fingerprint is made of.
type Part int

// The parts, in the order of Parts.
const (
	PartMethod Part = iota
	PartHost
	PartPort
	PartPath
	PartQuery
	PartBody

	partCount = 6
)

// String returns the part's name for senders.
func (p Part) String() string {
	return [partCount]string{"method", "host", "port", "path", "query", "body"}[p]
}

// Parts are short hashes of what a fingerprint is made of, by which a mismatch says what differed.
// With 16 bits each they decide nothing: one in 65,536 differences is not named, and a part cannot
// be learned from its hash. The zero value: they are not known. As text they are 16 characters.
type Parts [2 * partCount]byte //nolint:recvcheck // it is a value, and is set by two

// Set sets the hash of a part. Parts that are never set count as equal.
func (p *Parts) Set(part Part, value []byte) {
	binary.BigEndian.PutUint16(p[2*part:], uint16(xxhash.Sum64(value))) //nolint:gosec // 16 bits are what is kept
}

// Differ names the parts that differ; nil if either side is not known, or if no difference is seen.
func (p Parts) Differ(other Parts) (names []string) {
	if p == (Parts{}) || other == (Parts{}) {
		return nil
	}
	for part := range Part(partCount) {
		if [2]byte(p[2*part:]) != [2]byte(other[2*part:]) {
			names = append(names, part.String())
		}
	}
	return names
}

// MarshalText implements encoding.TextMarshaler.
func (p Parts) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, p[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. A text of another length is read as not known:
// it decides nothing.
func (p *Parts) UnmarshalText(text []byte) error {
	*p = Parts{}
	if whole, err := base64.RawURLEncoding.AppendDecode(nil, text); err == nil && len(whole) == len(p) {
		*p = Parts(whole)
	}
	return nil
}

// Member is a part of a delivery: its path, as a template spells it, and a digest of its value.
type Member struct {
	Path string // as a template spells it: body.id
	Sum  uint64 // a digest; equal values have equal ones
}

// Differences returns the paths of members that only one of a and b has, or that have another value
// there, sorted.
func Differences(a, b []Member) []string {
	var all []string
	for _, one := range [][2][]Member{{a, b}, {b, a}} {
		for _, m := range one[0] {
			if !slices.Contains(one[1], m) {
				all = append(all, m.Path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
