package history

import "strings"

// windows cuts a range of keys of one kind into short ones. A limit alone does not make a read
// short: etcd counts every key of the requested range. Keys begin with the hash of their workflow,
// so the number of digits that the keys of a window have in common bounds how many there are. How
// many digits are right is learnt from what was found.
type windows struct {
	root, end string // of the kind; of the range
	from      string // what is left begins here
	digits    int    // of the hash
	rest      bool   // a part of the window was read before
}

const (
	firstDigits = 3    // of 4096 windows; a million keys are 250 in each
	manyKeys    = 4096 // in a window: counting them takes etcd 0.2 ms
	hashDigits  = 16
)

func newWindows(root, from, end string) *windows {
	return &windows{root: root, end: end, from: from, digits: firstDigits, rest: from > root}
}

func (w *windows) isOver() bool { return w.from >= w.end }

// windowEnd returns the end of the window that begins at from.
func (w *windows) windowEnd() string {
	if d := nextDigits(w.from[len(w.root):], w.digits); d != "" {
		return min(w.root+d, w.end)
	}
	return w.end
}

// nextDigits returns the first n digits after those that hex begins with; "" = there are none.
func nextDigits(hex string, n int) string {
	d := []byte((hex + strings.Repeat("0", n))[:n])
	for i := n - 1; i >= 0; i-- {
		switch c := d[i]; {
		case c == '9':
			d[i] = 'a'
			return string(d[:i+1])
		case c >= '0' && c < '9' || c >= 'a' && c < 'f':
			d[i]++
			return string(d[:i+1])
		}
	}
	return ""
}

// advance records that the window up to end was read: it has count keys, and last is the one to go
// on behind, "" if none is left in it.
func (w *windows) advance(end, last string, count int64) {
	for n := count; n > manyKeys && w.digits < hashDigits; n /= 16 {
		w.digits++
	}
	if last != "" {
		w.from, w.rest = last+"\x00", true
		return
	}
	for n := 16 * max(count, 1); n <= manyKeys && w.digits > 0 && !w.rest; n *= 16 {
		w.digits--
	}
	w.from, w.rest = end, false
}
