package protocol

import (
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

var errForeignKey = errors.New("not a key of this layout")

// otherOf is the lock that a duplicate takes at a replica whose route has strategy none if this
// one's has not, or the other way.
func (y Layout) otherOf(s idem.Scope) string {
	s.PerEvent = !s.PerEvent
	return y.Lock(s)
}

// What follows reads keys back: the proof that no two scopes share one.

// parseLock is the scope of a lock's key. Where it is a workflow's lock, the event's key stands in
// the value alone.
func (y Layout) parseLock(key string) (idem.Scope, error) {
	return y.parseScoped(y.All(KindLocks), key)
}

// parseQueued is the scope of a place in the queue.
func (y Layout) parseQueued(key string) (idem.Scope, error) {
	s, err := y.parseScoped(y.All(KindQueue), key)
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

// TestKeysHaveTheShapeThatIsPromised has each kind of key: processes of two releases share one
// etcd.
func TestKeysHaveTheShapeThatIsPromised(t *testing.T) {
	for got, want := range exampleKeys() {
		if want = "/hooklock/v1/" + want; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// exampleKeys are a key of each kind, and prefixes, with what each of them is without its root.
func exampleKeys() map[string]string {
	y := NewLayout("/hooklock/")
	s := idem.Scope{Workflow: "stripe/acme", Key: "00000000000000ff-000102030405060708090a0b0c0d0e0f"}
	alone := s
	alone.PerEvent = true
	at, w := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), "b1e770dc453d4cc0"
	name := "\x00\x00\x00\x00\x00\x00\x00\xff\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xb1\xe7\x70\xdc\x45\x3d\x4c\xc0"
	l := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_a", Scope: s,
		Slots: []idem.Slot{{LimitName: "erp/a b", Index: 3},
			{LimitName: "full", Index: -1}}, Order: &idem.Order{ScopeKey: "0af"}}, Alive: SessionAlive("abc")}
	k := y.Keys(l)
	return map[string]string{
		y.Root:                                 "",
		y.Alive(SessionAlive("abc")):           "sessions/abc",
		y.Alive("holds/exec_a"):                "holds/exec_a",
		y.All(KindSessions):                    "sessions/",
		y.All(KindLocks):                       "locks/",
		y.Lock(s):                              "locks/" + w + "/stripe%2Facme",
		y.Lock(alone):                          "locks/" + w + "/stripe%2Facme/" + string(s.Key),
		y.All(KindQueue):                       "queue/",
		y.Queue(s):                             "queue/" + w + "/stripe%2Facme/",
		y.Queued(s):                            "queue/" + w + "/stripe%2Facme/" + string(s.Key),
		y.All(KindRecords):                     "r/",
		y.Record(s):                            "r/" + name,
		y.All(KindOlderRecords) + "x":          "keys/x",
		y.Of(KindQuestions, "exec_a"):          "questions/exec_a",
		y.Of(KindAnswers, "exec_a"):            "answers/exec_a",
		y.All(KindCancels + "abc" + "/"):       "cancels/abc/",
		k.Cancel:                               "cancels/abc/exec_a",
		y.All(KindForgets):                     "forgets/",
		k.Forget:                               "forgets/exec_a",
		y.All(KindSlots):                       "slots/",
		y.OfLimit(KindSlots, "erp/a b"):        "slots/697f29d293ed1519/erp%2Fa%20b/",
		k.Slots[0].Key:                         "slots/697f29d293ed1519/erp%2Fa%20b/3",
		y.All(KindSlotWaiters):                 "turns/",
		k.Slots[0].Waiters:                     "turns/697f29d293ed1519/erp%2Fa%20b/",
		y.SlotWaiter("full", "exec_a"):         "turns/8703fa3579e75db5/full/exec_a",
		k.Request:                              "requests/exec_a",
		y.All(KindParked):                      "parked/",
		k.Index:                                "parked/exec_a",
		y.All(KindAges):                        "ages/",
		k.Age:                                  "ages/exec_a",
		k.HighWaterMark:                        "marks/" + w + "/stripe%2Facme/0af",
		y.Duplicates("exec_a") + "me":          "duplicates/exec_a/me",
		y.Arrivals(s) + "me":                   "arrivals/" + name + "me",
		y.All(KindPauses):                      "pauses/",
		y.Pause(idem.PauseScope{Route: "a/b"}): "pauses/route/a%2Fb",
		y.All(KindAcknowledgements):            "seen/",
		y.Acknowledgement(idem.Concern{Kind: "dead_letters", Route: "a/b"}): "seen/dead_letters/a%2Fb",
		y.Audit(at, "me", 2):                    "audits/fffffe5de31f91ff-fffffffffffffffd-me",
		y.CountsOf(KindMinutes, at, "me", 2):    "minutes/ffffffff94f68f3f-me-2",
		y.CountsOf(KindHours, at, "me", 2):      "hours/ffffffff94f68f3f-me-2",
		y.CountsOf(KindCounting, at, "me", 2):   "counting/ffffffff94f68f3f-me-2",
		y.CountsSince(KindHours, at):            "hours/ffffffff94f68f3f.",
		y.All(KindLeases+KindRecords) + "af":    "leases/r/af",
		y.Refused(at, "me", 2, "ci"):            "refused/fffffe5de31f91ff-fffffffffffffffd-me-" + Hash16("ci"),
		y.BadSignature(at, "me", 2, "a/b"):      "signatures/fffffe5de31f91ff-fffffffffffffffd-me-" + Hash16("a/b"),
		y.Replica("me"):                         "replicas/me",
		y.Notices():                             "notices",
		y.Job("job_a", idem.JobRunning):         "jobs/open/job_a",
		y.Job("job_a", idem.JobDone):            "jobs/ended/job_a",
		y.JobRuns("job_a") + "exec_a":           "jobs/runs/job_a/exec_a",
		y.FirstTwin("0af"):                      "twins/0af",
		y.Alias(s.Key):                          "aliases/" + string(s.Key),
		y.Joined(s.Key) + string(alone.Key):     "joined/" + string(s.Key) + "/" + string(s.Key),
		y.Index(KindArrivals, 0xaf, FieldTrace): "index/arrivals/af/trace",
	}
}

// TestThePageOfTheArchitectureListsEachKey compares its table with the keys that are made.
func TestThePageOfTheArchitectureListsEachKey(t *testing.T) {
	page, source := read(t, "../../docs/architecture.md"), read(t, "layout.go")
	made, listed := map[string]bool{}, ""
	for _, row := range regexp.MustCompile(`(?m)^<prefix>/(v1/.*?)(?:  |$)`).FindAllStringSubmatch(page, -1) {
		made[row[1]], listed = false, listed+" "+row[1]
	}
	for key := range exampleKeys() {
		if strings.HasSuffix(key, "/") || strings.HasSuffix(key, ".") {
			continue // a prefix of keys
		}
		rows := 0
		for row := range made {
			if patternOf(row).MatchString(strings.TrimPrefix(key, "/hooklock/")) {
				made[row] = true
				rows++
			}
		}
		if rows != 1 {
			t.Errorf("%d rows of the page have the form of %q", rows, key)
		}
	}
	for row, is := range made {
		if !is {
			t.Errorf("no key has the form of %s", row)
		}
	}
	for _, kind := range regexp.MustCompile(`(?m)^\t[Kk]ind\w+ += "(.*?)"`).FindAllStringSubmatch(source, -1) {
		if !strings.Contains(listed, " v1/"+kind[1]) {
			t.Errorf("the page has no row for %s", kind[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// patternOf returns what matches the keys of a row. Names of events are binary below two kinds.
func patternOf(row string) *regexp.Regexp {
	key, hash := `[0-9a-f]{16}-[0-9a-f]{32}`, `[0-9a-f]{16}`
	if strings.Contains(row, "<key><W>") {
		key, hash = `(?s:.{24})`, `(?s:.{8})`
	}
	row = strings.NewReplacer("<key>", key, "<W>", hash).Replace(row)
	return regexp.MustCompile("^" + regexp.MustCompile(`<[a-z ,]*>`).ReplaceAllString(row, "[^/]+") + "$")
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
	if y.Lock(whole) == y.Lock(alone) || y.otherOf(whole) != y.Lock(alone) || y.otherOf(alone) != y.Lock(whole) {
		t.Fatal("they meet")
	}
	if y.Queued(whole) != y.Queued(alone) || y.Queue(alone) != y.Queued(whole) ||
		!strings.HasPrefix(y.Queued(whole), y.Queue(whole)) {
		t.Fatal("under strategy none an event does not see that it waits")
	}
}

func TestALimitWithoutASlotHasNoKey(t *testing.T) {
	var l idem.Lock
	l.Slots = []idem.Slot{{LimitName: "erp"}, {LimitName: "full", Index: -1}}
	if keys := NewLayout("/p").SlotsOf(&l); len(keys) != 1 {
		t.Errorf("%d slots", len(keys))
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
		if want := (idem.Scope{Workflow: workflow, PerEvent: perEvent}); err != nil || got.Workflow != workflow ||
			got.PerEvent != want.PerEvent || perEvent && got.Key != s.Key {
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
		k := y.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_a", Scope: s},
			Alive: SessionAlive("abc")})
		for got, want := range map[string]string{
			k.Lock: y.Lock(s), k.OtherLock: y.otherOf(s), k.Entry: y.Queued(s), k.Queue: y.Queue(s),
			k.Record: y.Record(s), k.Session: y.Alive(SessionAlive("abc")),
			k.Hold: y.Alive(HoldAlive("exec_a")), k.Cancel: y.All(KindCancels+"abc"+"/") + "exec_a",
			k.Index: y.All(KindParked) + "exec_a", k.Age: y.All(KindAges) + "exec_a",
		} {
			if got != want {
				t.Errorf("%s is %s where it is read alone", got, want)
			}
		}
	}
}
