package protocol

import (
	"encoding/json"
	"time"
)

const leaseVersion = 1

// ListedLease says when keys were put on a lease.
type ListedLease struct {
	Version int `json:"v"`
	// Chain is one process and retention: a lease of a chain takes no more keys when the next but one of the chain was granted.
	Chain string    `json:"chain"`
	At    time.Time `json:"at"`     // by the clock of that process
	Open  int64     `json:"openNs"` // for how long it takes keys
	// Index is what is searched first; nil = the lease still takes keys, or its process ended before it wrote one.
	Index *LeaseIndex `json:"index,omitempty"`
}

// EncodeLease encodes a listed lease.
func EncodeLease(l ListedLease) []byte {
	l.Version, l.At = leaseVersion, l.At.UTC().Round(time.Millisecond)
	b, _ := json.Marshal(l) // strings, numbers and times always encode
	return b
}

// DecodeLease returns false for a value that this release cannot read.
func DecodeLease(b []byte) (l ListedLease, ok bool) {
	return l, json.Unmarshal(b, &l) == nil && l.Version == leaseVersion
}
