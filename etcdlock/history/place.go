package history

import (
	"cmp"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// place is the position of a key in a list: the newest revision comes first, and of one revision,
// which all transactions of a batch share, the smallest key.
type place struct {
	revision int64
	key      string
}

// beginning is before the first place of a list, and lastKey behind all keys of a revision.
var beginning = place{math.MaxInt64, ""}

const lastKey = "\xff"

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(other.revision, p.revision), strings.Compare(p.key, other.key))
}

// isBefore reports whether another place follows p.
func (p place) isBefore(other place) bool { return p.compare(other) < 0 }

// formatPlace writes a place for a cursor.
func (o *Options) formatPlace(p place) string {
	return strconv.FormatInt(p.revision, 10) + "/" +
		hex.EncodeToString([]byte(strings.TrimPrefix(p.key, o.Layout.Root)))
}

// parsePlace reads what formatPlace has written. Of any other text the revision is 0.
func (o *Options) parsePlace(text string) (p place) {
	revision, key, _ := strings.Cut(text, "/")
	name, err := hex.DecodeString(key)
	if err != nil {
		return place{}
	}
	p.revision, _ = strconv.ParseInt(revision, 10, 64)
	if p.key = string(name); p.key != lastKey {
		p.key = o.Layout.Root + p.key
	}
	return p
}
