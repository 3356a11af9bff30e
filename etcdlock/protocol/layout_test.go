package protocol

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
func (y Layout) parseLock(key string) (idem.Scope, error) { return y.parseScoped(y.Locks(), key) }

// parseQueued is the scope of a place in the queue.
func (y Layout) parseQueued(key string) (idem.Scope, error) {
	s, err := y.parseScoped(y.Root+KindQueue, key)
	if err != nil || s.Key == "" {
		return idem.Scope{}, errForeignKey
	}
	s.PerEvent = false // who waits, waits for a workflow
	return s, nil
}

func (y Layout) parseScoped(prefix, key string) (idem.Scope, error) {
	rest, ok := strings.CutPrefix(key, prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return idem.Scope{}, errForeignKey
	}
	workflow, err := url.PathUnescape(parts[1])
	if err != nil || url.PathEscape(workflow) != parts[1] || Hash16(workflow) != parts[0] {
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
	y := NewLayout("/hooklock/")
	s := idem.Scope{Workflow: "stripe/acme", Key: "00000000000000ff-0123"}
	w := Hash16("stripe/acme")
	for got, want := range map[string]string{
		y.Session("abc"):        "/hooklock/v1/sessions/abc",
		y.Lock(s):               "/hooklock/v1/locks/" + w + "/stripe%2Facme",
		y.Queued(s):             "/hooklock/v1/queue/" + w + "/stripe%2Facme/00000000000000ff-0123",
		y.Alive("holds/exec_a"): "/hooklock/v1/holds/exec_a",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(w) != 16 {
		t.Errorf("%q is not 16 digits", w)
	}
}

func TestTheNameOfAnEventIsReadBack(t *testing.T) {
	y := NewLayout("/hooklock")
	s := idem.Scope{Workflow: "stripe/acme", Key: idem.MakeKey(255, [16]byte{1, 15: '/'})}
	name := strings.TrimPrefix(y.Record(s), "/hooklock/v1/r/")
	if key, w, ok := EventAt(name + "behind"); len(name) != 32 || key != s.Key || w != Hash16(s.Workflow) || !ok {
		t.Errorf("%q: %s %s %v", name, key, w, ok)
	}
	if _, _, ok := EventAt(name[1:]); ok {
		t.Error("less than a name")
	}
	for _, n := range []int{2, 8, 16, 17, 18, 49} {
		if b := Beginning(string(s.Key[:n])); !strings.HasPrefix(name, b) || len(b) != (n-min(n/17, 1))/2 {
			t.Errorf("%d digits are %q", n, b)
		}
	}
	for _, none := range []string{"", "0", "zz", "00zz", "A-B"} {
		if b := Beginning(none); strings.HasPrefix(name, b) != (len(none) < 2) {
			t.Errorf("%s is %q", none, b)
		}
	}
	other := s
	if other.Key = "no key"; y.Record(other) == y.Record(s) || len(y.Record(other)) != len(y.Record(s)) {
		t.Error("what is no key has no name of its own")
	}
}

func TestALockOfOneEventIsNotThatOfItsWorkflow(t *testing.T) {
	y := NewLayout("/p")
	whole := idem.Scope{Workflow: "w", Key: "k"}
	alone := idem.Scope{Workflow: "w", Key: "k", PerEvent: true}
	if y.Lock(whole) == y.Lock(alone) || y.Other(whole) != y.Lock(alone) || y.Other(alone) != y.Lock(whole) {
		t.Fatal("they meet")
	}
	if y.Queued(whole) != y.Queued(alone) || y.Queue(alone) != y.Queued(whole) || !strings.HasPrefix(y.Queued(whole), y.Queue(whole)) {
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
		y := NewLayout("/hooklock")
		s := idem.Scope{Workflow: workflow, Key: idem.Key(key), PerEvent: perEvent}
		got, err := y.parseLock(y.Lock(s))
		if want := (idem.Scope{Workflow: workflow, PerEvent: perEvent}); err != nil || got.Workflow != workflow || got.PerEvent != want.PerEvent || perEvent && got.Key != s.Key {
			t.Fatalf("%+v became %+v, %v", s, got, err)
		}
		s.PerEvent = false
		if got, err := y.parseQueued(y.Queued(s)); err != nil || got != s {
			t.Fatalf("%+v became %+v, %v", s, got, err)
		}
	})
}

func FuzzParseLockKey(f *testing.F) {
	f.Add("/hooklock/v1/locks/" + Hash16("w") + "/w")
	f.Add("/hooklock/v1/locks/" + Hash16("w") + "/w/k")
	f.Add("/hooklock/v1/locks/0/w")
	f.Fuzz(func(t *testing.T, key string) {
		y := NewLayout("/hooklock")
		s, err := y.parseLock(key)
		if err == nil && y.Lock(s) != key {
			t.Fatalf("%q was read as %+v, which is %q", key, s, y.Lock(s))
		}
	})
}

func TestTheKeysOfAnExecutionAreThoseThatAreReadOneByOne(t *testing.T) {
	y := NewLayout("/hooklock")
	for _, perEvent := range []bool{false, true} {
		s := idem.Scope{Workflow: "stripe/acme", Key: "00000000000000ff-0123", PerEvent: perEvent}
		k := y.Keys(&idem.Lock{Entry: idem.Entry{Execution: "exec_a", Scope: s}, Alive: SessionAlive("abc")})
		for got, want := range map[string]string{
			k.L: y.Lock(s), k.O: y.Other(s), k.Q: y.Queued(s), k.W: y.Queue(s), k.I: y.Record(s), k.S: y.Session("abc"),
			k.H: y.Alive(HoldAlive("exec_a")), k.C: y.Cancels("abc") + "exec_a", k.P: y.Parked() + "exec_a", k.G: y.Ages() + "exec_a",
		} {
			if got != want {
				t.Errorf("%s is %s where it is read alone", got, want)
			}
		}
	}
}
