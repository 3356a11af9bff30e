package etcdlock

import "testing"

// The watch of the session before may still be telling when the next one has read who is there.
func TestWhatAnOlderWatchTellsBringsNoSessionBack(t *testing.T) {
	l := newLive()
	l.replace(map[string]struct{}{"here": {}}, 10)
	l.appeared("gone", 7)
	l.appeared("new", 11)
	if l.has("gone") {
		t.Error("its locks would be taken for held until this process has another session")
	}
	if !l.has("here") || !l.has("new") {
		t.Error("who is there is not known")
	}
	l.met("back", 10)
	if l.has("back") {
		t.Error("the watch knows better")
	}
}
