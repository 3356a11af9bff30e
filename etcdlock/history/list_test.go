package history_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// names of workflows that are hard to put into a key or into a URL.
var oddNames = []string{"w", "a/b", "a-b", "a", "ä:1", "100%", "日本/語", "a b", "..", "%FF"}

func TestAListShowsEachExecutionOnceWhateverItsWorkflowIsCalled(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	want := map[idem.ExecutionID]idem.Status{}
	for i, name := range oddNames {
		running := lockFor(name, "runs")
		mustClaim(t, s, running, 0)
		want[running.Execution] = idem.Running
		for j := range i % 3 {
			want[mustEnqueue(t, s, lockFor(name, fmt.Sprintf("waits %d", j))).Lock.Execution] = idem.Pending
		}
		for j := range 3 {
			ended := lockFor(name, fmt.Sprintf("ended %d", j))
			ended.Scope.PerEvent = true
			mustSettle(t, mustClaim(t, s, ended, 0))
			want[ended.Execution] = idem.Success
			alone := lockFor(name, fmt.Sprintf("alone %d", j))
			alone.Scope.PerEvent = true
			mustClaim(t, s, alone, 0)
			want[alone.Execution] = idem.Running
		}
	}
	for _, limit := range []int{0, 1, 7} {
		got := map[idem.ExecutionID]idem.Status{}
		for _, f := range allExecutions(t, s, idem.ExecutionQuery{PageSize: limit}) {
			if _, twice := got[f.ID()]; twice {
				t.Fatalf("limit %d: %s twice", limit, f.ID())
			}
			got[f.ID()] = f.Status()
		}
		if len(got) != len(want) {
			t.Errorf("limit %d: %d executions, want %d", limit, len(got), len(want))
		}
		for id, status := range want {
			if got[id] != status {
				t.Errorf("limit %d: %s is %q, want %s", limit, id, got[id], status)
			}
		}
	}
	for _, status := range []idem.Status{idem.Pending, idem.Running, idem.CancelRequested, idem.Success, idem.Failed,
		idem.Aborted} {
		n := 0
		for _, w := range want {
			if w == status {
				n++
			}
		}
		if got := allExecutions(t, s, idem.ExecutionQuery{Status: status, PageSize: 5}); len(got) != n {
			t.Errorf("%d are %s, want %d", len(got), status, n)
		}
	}
	for _, name := range oddNames {
		for _, f := range allExecutions(t, s, idem.ExecutionQuery{Workflow: name, PageSize: 2, Status: idem.Running}) {
			if f.Workflow() != name || f.Status() != idem.Running {
				t.Errorf("of %q: %+v", name, f)
			}
		}
		if got := allExecutions(t, s, idem.ExecutionQuery{Workflow: name, PageSize: 2}); len(got) < 7 {
			t.Errorf("%d of %q", len(got), name)
		}
	}
}

func TestAListOfLocksHasOneForEachWorkflowThatIsHeld(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	for i, name := range oddNames {
		mustClaim(t, s, lockFor(name, "runs"), 0)
		for j := range i {
			mustEnqueue(t, s, lockFor(name, fmt.Sprintf("waits %d", j)))
		}
		alone := lockFor(name, "alone") // strategy none takes no lock
		alone.Scope.PerEvent = true
		mustClaim(t, s, alone, 0)
	}
	for _, limit := range []int{0, 1, 3} {
		var names []string
		for _, v := range allLocks(t, s, idem.LockQuery{PageSize: limit}) {
			names = append(names, v.Lock.Scope.Workflow)
			if want := slices.Index(oddNames, v.Lock.Scope.Workflow); v.Waiting != want || v.Lock.Token == 0 ||
				v.Lock.Dead {
				t.Errorf("%q: %d wait, want %d: %+v", v.Lock.Scope.Workflow, v.Waiting, want, v.Lock)
			}
		}
		slices.Sort(names)
		want := slices.Sorted(slices.Values(oddNames))
		if !slices.Equal(names, want) {
			t.Errorf("limit %d: %q, want %q", limit, names, want)
		}
	}
	if got := allLocks(t, s, idem.LockQuery{Prefix: "a", PageSize: 1}); len(got) != 4 {
		t.Errorf("%d begin with a", len(got))
	}
	for i, name := range oddNames {
		v, err := s.Lock(within(t, patience), name)
		if err != nil || v.Lock.Scope.Workflow != name || v.Waiting != i {
			t.Errorf("%q: %+v %v", name, v, err)
		}
	}
	if v, err := s.Lock(within(t, patience), "free"); !errors.Is(err, idem.ErrNoLock) {
		t.Errorf("%+v %v", v, err)
	}
}

func TestAWorkflowThatIsNotUTF8IsRefused(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	if held, seen, err := s.Claim(within(t, patience), lockFor("\xff\xfe", "event"), 0); held != nil ||
		!errors.Is(err, idem.ErrStoreUnavailable) {
		t.Errorf("%+v %v", seen, err)
	}
	count(t, e, "/hooklock/v1/locks/", 0)
}

func TestAListSkipsWhatItCannotRead(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	mustClaim(t, s, lockFor("w", "runs"), 0)
	k := protocol.Hash16("x") + "/"
	putRaw(t, e, map[string][]byte{
		"locks/" + k + "x": []byte(`{"v":99}`), "queue/" + k + "x/k": []byte(`{"v":99}`), protocol.KindRecords + k +
			"k": []byte("\x63"),
		"locks/foreign": []byte("x"), "locks/" + k + "y": []byte("x"),
	})
	if got := allExecutions(t, s, idem.ExecutionQuery{PageSize: 1}); len(got) != 1 || got[0].Workflow() != "w" {
		t.Errorf("executions: %+v", got)
	}
	if got := allLocks(t, s, idem.LockQuery{PageSize: 1}); len(got) != 1 || got[0].Lock.Scope.Workflow != "w" {
		t.Errorf("locks: %+v", got)
	}
	if v, err := s.Lock(within(t, patience), "x"); !errors.Is(err, idem.ErrStoreUnavailable) {
		t.Errorf("%+v %v", v, err)
	}
}

func TestALockWhoseOwnerIsDeadIsStaleInAListAndReapedWhenAskedFor(t *testing.T) {
	e := etcdtest.Start(t)
	y := protocol.NewLayout("/hooklock")
	putDead := func(workflow string) idem.Lock {
		l := lockFor(workflow, "event")
		l.Alive = protocol.SessionAlive("nobody")
		value, err := protocol.EncodeLock(&l)
		if err != nil {
			t.Fatal(err)
		}
		putRaw(t, e, map[string][]byte{strings.TrimPrefix(y.Lock(l.Scope), y.Root): value})
		return l
	}
	swept := putDead("swept")
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	eventually(t, "the store has looked at every lock, as it does once at its start", func() bool {
		f, err := s.Executions(within(t, patience), idem.ExecutionQuery{Workflow: "swept", Status: idem.Failed})
		return err == nil && len(f.Executions) == 1 && f.Executions[0].ID() == swept.Execution
	})
	l := putDead("w")
	for range 2 {
		if got := allLocks(t, s, idem.LockQuery{}); len(got) != 1 || !got[0].Lock.Dead {
			t.Fatalf("%+v", got)
		}
		if got := allExecutions(t, s, idem.ExecutionQuery{Workflow: "w"}); len(got) != 1 || !got[0].Lock.Dead {
			t.Fatalf("%+v", got)
		}
	}
	if v, err := s.Lock(within(t, patience), "w"); !errors.Is(err, idem.ErrNoLock) {
		t.Fatalf("%+v %v", v, err)
	}
	if f := mustFind(t, s, l.Execution); f.Record == nil || f.Status() != idem.Failed {
		t.Fatalf("%+v", f)
	}
}

func TestACursorSurvivesTheEndOfWhatItNames(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	held := map[string]*owned.Lock{}
	for i := range 8 {
		name := fmt.Sprintf("customer/%d", i)
		held[name] = mustClaim(t, s, lockFor(name, "event"), 0)
	}
	seen := map[string]bool{}
	for q := (idem.LockQuery{PageSize: 1}); ; {
		page, err := s.Locks(within(t, patience), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Locks {
			name := v.Lock.Scope.Workflow
			if seen[name] {
				t.Fatalf("%s twice", name)
			}
			seen[name] = true
			if err := held[name].Release(within(t, patience)); err != nil { // the cursor names it
				t.Fatal(err)
			}
		}
		if page.NextCursor == "" {
			break
		}
		q.Cursor = page.NextCursor
	}
	if len(seen) != len(held) {
		t.Errorf("%d of %d", len(seen), len(held))
	}
}

func TestWorkflowsOfOneHashAreListedOnceEach(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	for _, name := range []string{"a", "b", "c"} { // as if somebody had made them so
		l := lockFor(name, "runs")
		l.Alive = protocol.SessionAlive(sessionOf(t, e, s).Name)
		value, err := protocol.EncodeLock(&l)
		if err != nil {
			t.Fatal(err)
		}
		putRaw(t, e, map[string][]byte{"locks/" + protocol.Hash16("w") + "/" + name: value})
		for i := range 3 {
			l := lockFor(name, fmt.Sprintf("waits %d", i))
			if value, err = protocol.EncodeLock(&l); err != nil {
				t.Fatal(err)
			}
			putRaw(t, e, map[string][]byte{"queue/" + protocol.Hash16("w") + "/" + name + "/" +
				string(l.Scope.Key): value})
		}
	}
	if got := allLocks(t, s, idem.LockQuery{PageSize: 1}); len(got) != 3 {
		t.Errorf("%d locks", len(got))
	}
	if got := allExecutions(t, s, idem.ExecutionQuery{PageSize: 1}); len(got) != 12 {
		t.Errorf("%d executions", len(got))
	}
}

func TestAnythingButACursorOfTheListIsRefused(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	for _, workflow := range []string{"one", "two"} {
		mustClaim(t, s, lockFor(workflow, "event"), 0)
	}
	page, err := s.Executions(within(t, patience), idem.ExecutionQuery{PageSize: 1})
	if err != nil || page.NextCursor == "" {
		t.Fatalf("%+v %v", page, err)
	}
	for name, q := range map[string]idem.ExecutionQuery{
		"garbage":         {Cursor: "!"},
		"long":            {Cursor: strings.Repeat("a", 10_000)},
		"another kind":    {Cursor: page.NextCursor, Status: idem.Success},
		"another search":  {Cursor: page.NextCursor, Decision: idem.DecisionLocked},
		"no kind of list": {Cursor: protocol.KindSessions + "x"},
		"half a kind":     {Cursor: "lock"},
	} {
		if _, err := s.Executions(within(t, patience), q); !errors.Is(err, idem.ErrCursor) ||
			errors.Is(err, idem.ErrStoreUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Locks(within(t, patience), idem.LockQuery{Cursor: protocol.KindQueue + "w"}); !errors.Is(err,
		idem.ErrCursor) {
		t.Errorf("a cursor of executions for locks: %v", err)
	}
}
