package history

import (
	"strings"

	"hooklock/etcdlock/protocol"
)

// windows cut a range of keys of one kind into short ones. A limit alone does not make a read short: etcd counts every key of the range that
// it was asked for. Keys begin with the hash of their workflow, and those of records go on with the hash of their event, so a number of digits
// that the keys of a window have in common bounds how many there are. How many digits are right is learnt from what was found.
type windows struct {
	root, end string // of the kind; of the range
	from      string // what is left begins here
	records   bool

	outer  int  // digits of the workflow's hash
	inner  int  // digits of the event's, inside of a workflow
	inside bool // the window is one inside of a workflow
	rest   bool // a part of the window was read before
}

const (
	firstDigits = 3    // of 4096 windows; a million keys are 250 in each
	manyKeys    = 4096 // in a window: counting them takes etcd 0.2 ms
	hashDigits  = 16
)

func newWindows(root, from, end string) *windows {
	w := &windows{root: root, end: end, from: from, records: strings.HasSuffix(root, protocol.KindRecords), outer: firstDigits, inner: firstDigits}
	w.inside = w.insideOf(from) // it goes on there, or is about one workflow
	return w
}

func (w *windows) over() bool { return w.from >= w.end }

// next is where the window ends that begins at from.
func (w *windows) next() string {
	rest := w.from[len(w.root):]
	end := ""
	switch {
	case !w.inside && w.outer > 0:
		if d := nextDigits(rest, w.outer); d != "" {
			end = w.root + d
		}
	case w.inside:
		workflow := w.root + rest[:hashDigits]
		end = workflow + "0" // "0" follows "/"
		if d := nextDigits(rest[hashDigits+1:], w.inner); w.records && d != "" {
			end = workflow + "/" + d
		}
	}
	if end == "" || end > w.end {
		return w.end
	}
	return end
}

// nextDigits are the first n digits after those that hex begins with; "" = there are none.
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

// found is after the window up to end was read: it has count keys from where it began, and last is the one to go on behind, "" where none is
// left in it.
func (w *windows) found(end, last string, count int64) {
	digits := &w.outer
	if w.inside {
		digits = &w.inner
	}
	for n := count; n > manyKeys && *digits < hashDigits; n /= 16 {
		*digits++
	}
	if last != "" {
		w.from, w.rest = last+"\x00", true
		w.inside = w.inside || count > manyKeys && w.insideOf(last)
		return
	}
	for n := 16 * max(count, 1); n <= manyKeys && *digits > 0 && !w.rest; n *= 16 {
		*digits--
	}
	w.from, w.rest = end, false
	if w.inside && !w.insideOf(end) {
		w.inside, w.inner = false, firstDigits
	}
}

// insideOf reports whether a key comes after the first ones of its workflow's hash.
func (w *windows) insideOf(key string) bool {
	at := len(w.root) + hashDigits
	return len(key) > at && key[at] == '/'
}
