package link

import (
	"sort"
	"time"
)

const (
	// ageStep bounds how much younger than it is a revision can seem, as long as the history is
	// short.
	ageStep = 100 * time.Millisecond
	// maxAges bounds the history: 32 KiB.
	maxAges = 1024
)

// ages remembers when this process knew which revisions of etcd, so that it can say how old one is
// at least. The zero value with a clock knows nothing.
type ages struct {
	clock Clock
	known []known // by revision and time
}

// known says that etcd had the revision at the time.
type known struct {
	revision int64
	at       Instant
	began    Instant // of the step that at ends
}

// noteRevision remembers that etcd has the revision now. Within a step it moves the latest time on,
// which makes the revisions before it seem younger, by a step at most.
func (a *ages) noteRevision(revision int64) {
	now := a.clock.Instant()
	if n := len(a.known); n > 0 {
		last := &a.known[n-1]
		switch {
		case revision <= last.revision:
			return
		case a.clock.Since(last.began) < ageStep:
			last.revision, last.at = revision, now
			return
		case n == maxAges: // every second one goes: the older a revision, the coarser its age
			a.dropEverySecond()
		}
	}
	a.known = append(a.known, known{revision, now, now})
}

func (a *ages) dropEverySecond() {
	kept := a.known[:0]
	for i := 1; i < len(a.known); i += 2 {
		kept = append(kept, a.known[i])
	}
	a.known = kept
}

// ageOf returns how long ago etcd had the revision at the latest; 0 = that is not known.
func (a *ages) ageOf(revision int64) time.Duration {
	if revision <= 0 {
		return 0
	}
	at := sort.Search(len(a.known), func(i int) bool { return a.known[i].revision >= revision })
	if at == len(a.known) {
		return 0
	}
	return max(a.clock.Since(a.known[at].at), 0)
}

// forgetAll is called when etcd has gone back: its revisions come again.
func (a *ages) forgetAll() { a.known = nil }
