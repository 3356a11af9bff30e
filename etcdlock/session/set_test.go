package session

import "testing"

// The watch of the session before may still be telling when the next one has read who is there.
func TestAnEventOfAnOlderWatchBringsNoSessionBack(t *testing.T) {
	l := NewSet()
	l.Replace(map[string]struct{}{"here": {}}, 10)
	l.Add("gone", 7)
	l.Add("new", 11)
	if l.Has("gone") {
		t.Error("its locks would be taken for held until this process has another session")
	}
	if !l.Has("here") || !l.Has("new") {
		t.Error("who is there is not known")
	}
	l.AddFound("back", 10)
	if l.Has("back") {
		t.Error("the watch knows better")
	}
}
