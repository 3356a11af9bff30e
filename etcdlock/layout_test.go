package etcdlock

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"hooklock/idem"
)

var errForeignKey = errors.New("not a key of this layout")

// What follows reads keys back: the proof that no two scopes share one.

// parseLock is the scope of a lock's key. Where it is a workflow's lock, the event's key stands in the value alone.
func (y layout) parseLock(key string) (idem.Scope, error) { return y.parseScoped(y.locks(), key) }

// parseQueued is the scope of a place in the queue.
func (y layout) parseQueued(key string) (idem.Scope, error) {
	s, err := y.parseScoped(y.root+kindQueue, key)
	if err != nil || s.Key == "" {
		return idem.Scope{}, errForeignKey
	}
	s.PerEvent = false // who waits, waits for a workflow
	return s, nil
}

func (y layout) parseScoped(prefix, key string) (idem.Scope, error) {
	rest, ok := strings.CutPrefix(key, prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return idem.Scope{}, errForeignKey
	}
	workflow, err := url.PathUnescape(parts[1])
	if err != nil || url.PathEscape(workflow) != parts[1] || hash16(workflow) != parts[0] {
		return idem.Scope{}, errForeignKey
	}
	s := idem.Scope{Workflow: workflow}
	if len(parts) == 3 {
		if parts[2] == "" {
			return idem.Scope{}, errForeignKey
		}
		s.Key, s.PerEvent = idem.Key(parts[2]), true
	}
	return s, nil
}

func TestKeysHaveTheShapeThatIsPromised(t *testing.T) {
	y := newLayout("/hooklock/")
	s := idem.Scope{Workflow: "stripe/acme", Key: "00000000000000ff-0123"}
	w := hash16("stripe/acme")
	for got, want := range map[string]string{
		y.session("abc"):        "/hooklock/v1/sessions/abc",
		y.lock(s):               "/hooklock/v1/locks/" + w + "/stripe%2Facme",
		y.queued(s):             "/hooklock/v1/queue/" + w + "/stripe%2Facme/00000000000000ff-0123",
		y.record(s):             "/hooklock/v1/keys/" + w + "/00000000000000ff-0123",
		y.alive("holds/exec_a"): "/hooklock/v1/holds/exec_a",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(w) != 16 {
		t.Errorf("%q is not 16 digits", w)
	}
}

func TestALockOfOneEventIsNotThatOfItsWorkflow(t *testing.T) {
	y := newLayout("/p")
	whole := idem.Scope{Workflow: "w", Key: "k"}
	alone := idem.Scope{Workflow: "w", Key: "k", PerEvent: true}
	if y.lock(whole) == y.lock(alone) || y.other(whole) != y.lock(alone) || y.other(alone) != y.lock(whole) {
		t.Fatal("they meet")
	}
	if y.queued(whole) != y.queued(alone) || y.queue(alone) != y.queued(whole) || !strings.HasPrefix(y.queued(whole), y.queue(whole)) {
		t.Fatal("under strategy none an event does not see that it waits")
	}
}

func FuzzLockKeyRoundTrip(f *testing.F) {
	for _, w := range []string{"", "w", "a/b", "%2F", "ä b\x00\xff", ".."} {
		f.Add(w, "00000000000000ff-01", false)
		f.Add(w, "k", true)
	}
	f.Fuzz(func(t *testing.T, workflow, key string, perEvent bool) {
		if key == "" || strings.Contains(key, "/") {
			t.Skip()
		}
		y := newLayout("/hooklock")
		s := idem.Scope{Workflow: workflow, Key: idem.Key(key), PerEvent: perEvent}
		got, err := y.parseLock(y.lock(s))
		if want := (idem.Scope{Workflow: workflow, PerEvent: perEvent}); err != nil || got.Workflow != workflow || got.PerEvent != want.PerEvent || perEvent && got.Key != s.Key {
			t.Fatalf("%+v became %+v, %v", s, got, err)
		}
		s.PerEvent = false
		if got, err := y.parseQueued(y.queued(s)); err != nil || got != s {
			t.Fatalf("%+v became %+v, %v", s, got, err)
		}
	})
}

func FuzzParseLockKey(f *testing.F) {
	f.Add("/hooklock/v1/locks/" + hash16("w") + "/w")
	f.Add("/hooklock/v1/locks/" + hash16("w") + "/w/k")
	f.Add("/hooklock/v1/locks/0/w")
	f.Fuzz(func(t *testing.T, key string) {
		y := newLayout("/hooklock")
		s, err := y.parseLock(key)
		if err == nil && y.lock(s) != key {
			t.Fatalf("%q was read as %+v, which is %q", key, s, y.lock(s))
		}
	})
}
