package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func allAudits(tb testing.TB, s *Store, q idem.AuditQuery) (all []idem.Audit) {
	tb.Helper()
	for {
		page, err := s.Audits(within(tb, patience), q)
		if err != nil {
			tb.Fatal(err)
		}
		if q.PageSize > 0 && len(page.Audits) > q.PageSize {
			tb.Fatalf("%d on a page of %d", len(page.Audits), q.PageSize)
		}
		all = append(all, page.Audits...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return all
		}
	}
}

func TestWhatIsAuditedIsKnownEverywhereTheNewestFirst(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	a := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	b := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	start := time.Now().UTC().Round(time.Millisecond)
	for i := range 250 {
		s := []*Store{a, b}[i%2]
		s.AuditRefusal(idem.Audit{
			At: start.Add(time.Duration(i) * time.Second), Who: []string{"ops", "ci"}[i%2],
			What: []string{"execution.cancel", "lock.force_release"}[i%2], Result: "done",
			Why: fmt.Sprint(i), Workflow: fmt.Sprintf("w%d", i%5),
			Execution: idem.ExecutionID(fmt.Sprintf("exec_%d", i)),
		})
	}
	written(t, a)
	written(t, b)
	for _, s := range []*Store{a, b} {
		for _, limit := range []int{0, 1, 7} {
			all := allAudits(t, s, idem.AuditQuery{PageSize: limit})
			if len(all) != 250 {
				t.Fatalf("%d of 250 with limit %d", len(all), limit)
			}
			for i, got := range all {
				if want := fmt.Sprint(249 - i); got.Why != want ||
					!got.At.Equal(start.Add(time.Duration(249-i)*time.Second)) {
					t.Fatalf("at %d is %+v", i, got)
				}
			}
		}
	}
	for want, q := range map[int]idem.AuditQuery{
		125: {Who: "ops"}, 124: {What: "lock.", Since: start.Add(2 * time.Second)}, 50: {Prefix: "w3"},
		1:  {Execution: "exec_17"},
		10: {Since: start.Add(240 * time.Second)}, 11: {Until: start.Add(10 * time.Second)}, 0: {Who: "nobody"},
		2: {Who: "ci", What: "lock", Since: start.Add(246 * time.Second)},
	} {
		for _, limit := range []int{0, 3} {
			q.PageSize = limit
			if got := allAudits(t, b, q); len(got) != want {
				t.Errorf("%+v: %d, want %d", q, len(got), want)
			}
		}
	}
	if _, err := a.Audits(within(t, patience), idem.AuditQuery{Cursor: "locks/x"}); !errors.Is(err, idem.ErrCursor) {
		t.Errorf("a cursor of another list: %v", err)
	}
}

func TestAnAuditEndsAfterThirtyDays(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s.AuditRefusal(idem.Audit{At: time.Now(), Who: "ops", What: "execution.cancel", Result: "done"})
	written(t, s)
	got, err := e.Client.Get(within(t, patience), s.layout.All(protocol.KindAudits), clientv3.WithPrefix())
	if err != nil || len(got.Kvs) != 1 {
		t.Fatal(got, err)
	}
	left, err := e.Client.TimeToLive(within(t, patience), clientv3.LeaseID(got.Kvs[0].Lease))
	if err != nil || left.TTL < int64(idem.AuditRetention/time.Second)-60 ||
		left.TTL > int64((idem.AuditRetention+idem.ExtraRetention(idem.AuditRetention))/time.Second) {
		t.Errorf("its lease lasts for %d s: %v", left.TTL, err)
	}
}

func TestRefusalsAreBoundedForEachTokenAndMadeChangesStay(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s.audits.Most, s.audits.MostOfAll = 40, 100
	start := time.Now()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Millisecond) }
	audit := func(i int, who, result string) {
		s.AuditRefusal(idem.Audit{At: at(i), Who: who, What: "execution.cancel", Result: result, Why: fmt.Sprint(i)})
	}
	for i := range 200 {
		audit(i, "ops", "done")
		audit(i, "reader", "nothing to do")
	}
	for i := 200; i < 1000; i++ {
		audit(i, "reader", "refused")
		if i%80 == 0 {
			written(t, s)
		}
	}
	audit(1000, "other", "refused")
	written(t, s)
	counts := func() map[string]int {
		n := map[string]int{}
		for _, one := range allAudits(t, s, idem.AuditQuery{PageSize: 7}) {
			n[one.Who]++
		}
		return n
	}
	eventually(t, "the oldest refusals of the reader are gone", func() bool { return counts()["reader"] <= 42 })
	if n := counts(); n["ops"] != 200 || n["other"] != 1 || n["reader"] < 40 {
		t.Fatalf("%v are left", n)
	}
	all := allAudits(t, s, idem.AuditQuery{})
	if !slices.IsSortedFunc(all, func(a, b idem.Audit) int { return b.At.Compare(a.At) }) {
		t.Error("the list is not in the order of time")
	}
	for who := range 20 {
		for i := range 10 {
			audit(1001+i, fmt.Sprint("PERSON", who, " (ops)"), "refused")
		}
	}
	written(t, s)
	eventually(t, "the oldest refusals of all are gone", func() bool {
		n := counts()
		return len(allAudits(t, s, idem.AuditQuery{})) <= 200+105 && n["ops"] == 200
	})
}

func TestAFloodOfRefusalsLeavesRoomForMadeChangesAndForOthers(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	wire.Blackhole(true)
	for range 3 * s.audits.Room {
		s.AuditRefusal(idem.Audit{At: time.Now(), Who: "reader", What: "execution.cancel", Result: "refused"})
	}
	s.AuditRefusal(idem.Audit{At: time.Now(), Who: "other", What: "execution.cancel", Result: "refused"})
	s.AuditRefusal(idem.Audit{At: time.Now(), Who: "ops", What: "execution.cancel", Result: "done"})
	wire.Blackhole(false)
	written(t, s)
	for _, who := range []string{"ops", "other"} {
		if one := allAudits(t, s, idem.AuditQuery{Who: who}); len(one) != 1 {
			t.Errorf("what %s asked for is not there: %v", who, one)
		}
	}
}

func TestAuditsThatEtcdDoesNotTakeNowAreWrittenLaterAndBounded(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	s.audits.Room = 500
	wire.Blackhole(true)
	for i := range s.audits.Room + 5 {
		s.AuditRefusal(idem.Audit{At: time.Now(), Who: "ops", What: "execution.cancel", Result: "done",
			Why: fmt.Sprint(i)})
	}
	// all of it passes: nothing answers
	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if s.audits.Write(short) || s.ShedAudits() != 5 {
		t.Fatalf("written through a black hole, or %d shed", s.ShedAudits())
	}
	wire.Blackhole(false)
	written(t, s)
	if n, err := e.Count(within(t, patience), s.layout.All(protocol.KindAudits)); err != nil ||
		n != int64(s.audits.Room) {
		t.Errorf("%d are written, want %d: %v", n, s.audits.Room, err)
	}
}

// JSON takes six bytes for a character that a person has written as one.
func TestLongAuditsAreKeptHoweverManyComeTogether(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for i := range history.NoteBatch {
		s.AuditRefusal(idem.Audit{
			At: time.Now(), Who: "ops", What: "execution.cancel", Result: "done",
			Why: strings.Repeat("<", idem.MaxReason), Workflow: strings.Repeat("<", 2048),
			Execution: idem.ExecutionID(fmt.Sprintf("exec_%d", i)),
		})
	}
	written(t, s)
	if all := allAudits(t, s, idem.AuditQuery{}); len(all) != history.NoteBatch {
		t.Fatalf("%d of %d", len(all), history.NoteBatch)
	}
}

func TestAuditsAndDuplicatesAreWrittenWhereEtcdTakesFewOperationsAtATime(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartWithTxnOps(t, 8)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	h := mustClaim(t, s, lockFor("w", "one"), 0)
	for i := range 50 {
		s.AuditRefusal(idem.Audit{At: time.Now(), Who: "ops", What: "execution.cancel", Result: "done",
			Why: fmt.Sprint(i)})
		s.CountDuplicate(idem.ExecutionID(fmt.Sprint("exec_", i)), time.Hour)
	}
	written(t, s)
	if all := allAudits(t, s, idem.AuditQuery{}); len(all) != 50 {
		t.Errorf("%d of 50 audits", len(all))
	}
	if n := len(keysBelow(t, e, "/hooklock/v1/duplicates/")); n != 50 {
		t.Errorf("%d of 50 copies", n)
	}
	mustSettle(t, h)
}

func TestAForgetSaysWhereTheStoredRequestCouldNotBeDeleted(t *testing.T) {
	e := etcdtest.Start(t)
	hangs := errors.New("the bucket does not answer")
	var asked []string
	s := openStore(t, Options{Endpoints: []string{e.Endpoint},
		Erase: func(_ context.Context, id idem.ExecutionID, value []byte) error {
			asked = append(asked, string(id)+" "+string(value))
			return hangs
		}})
	l := deadLetter(t, s)
	a := byPerson()
	found, err := s.Forget(within(t, patience), l.Execution, byOps(false), a)
	if !errors.Is(err, idem.ErrNotErased) || !errors.Is(err, hangs) || found.ID() != l.Execution ||
		a.Result != idem.AuditDone {
		t.Fatalf("%+v, %+v, %v", found, a, err)
	}
	if len(asked) != 1 || !strings.HasPrefix(asked[0], string(l.Execution)+" ") {
		t.Errorf("erased %q", asked)
	}
	if _, err := s.Execution(within(t, patience), l.Execution); !errors.Is(err, idem.ErrNoExecution) {
		t.Errorf("it is not forgotten: %v", err)
	}
}

func TestWhatHadNothingToDoIsBoundedAsARefusalIs(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s.audits.Most = 20
	l := settledOne(t, s)
	if _, err := s.Forget(within(t, patience), l.Execution, byOps(false), byPerson()); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		a := byPerson()
		a.Result = idem.AuditNothing
		if err := s.Audit(within(t, patience), a); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the oldest are gone", func() bool {
		n, err := e.Count(within(t, patience), s.layout.All(protocol.KindRefused))
		return err == nil && n >= 20 && n <= 22
	})
	if n, err := e.Count(within(t, patience), s.layout.All(protocol.KindAudits)); err != nil || n != 1 {
		t.Errorf("%d audits of changes: %v", n, err)
	}
}
