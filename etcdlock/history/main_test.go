package history

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = etcdtest.Patience

var within = etcdtest.Within

// openReader returns a reader of e for a process that knows nothing.
func openReader(tb testing.TB, e *etcdtest.Etcd) *Reader {
	tb.Helper()
	return openReaderAt(tb, e, "me", link.SystemClock())
}

// openReaderAt is openReader for a process of that name, with a clock of its own.
func openReaderAt(tb testing.TB, e *etcdtest.Etcd, name string, clock link.Clock) *Reader {
	tb.Helper()
	return openReaderOf(tb, &link.Target{Endpoints: []string{e.Endpoint}}, name, clock)
}

// openReaderOf is openReaderAt for an etcd that is reached in a way of its own.
func openReaderOf(tb testing.TB, target *link.Target, name string, clock link.Clock) *Reader {
	tb.Helper()
	pool, err := link.OpenPool(target)
	if err != nil {
		tb.Fatal(err)
	}
	tasks := commit.NewTasks()
	tb.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		_ = tasks.Close(ended)
		if err := pool.Close(); err != nil {
			tb.Error(err)
		}
	})
	o := &Options{
		Pool: pool, Layout: protocol.NewLayout("/hooklock"), Clock: clock, Writer: name, Tasks: tasks,
		Sessions: session.NewSet(), Process: knowsNothing{},
	}
	return NewReader(o, NewDuplicates(o))
}

// knowsNothing is a process that holds nothing and follows nothing.
type knowsNothing struct{ Process }

func (knowsNothing) Holds(idem.ExecutionID) bool               { return false }
func (knowsNothing) Size(string, idem.Slot) int                { return 0 }
func (knowsNothing) Rows(clientv3.LeaseID) []protocol.Row      { return nil }
func (knowsNothing) Follow(string, bool) (none idem.Following) { return none }

// lockIn is a lock of that event.
func lockIn(workflow, event string) idem.Lock {
	key := idem.Key(fmt.Sprintf("%016x-%032x", len(event), event))
	return idem.Lock{ExecutionFacts: idem.ExecutionFacts{
		Execution: idem.NewExecutionID(workflow, key, [4]byte{}), Scope: idem.Scope{Workflow: workflow, Key: key},
		Route: "r", EventID: event, Attempt: 1,
		StartedAt: time.Now(), Retention: time.Hour,
	}}
}

func success(body string) idem.End {
	return idem.End{
		Status: idem.Success, Outcome: idem.Executed, FinishedAt: time.Now(), Remembered: true,
		Answer: &idem.Answer{Status: 200, Bytes: int64(len(body)), Whole: true, Body: []byte(body)},
	}
}

func ids(found []idem.Found) (all []idem.ExecutionID) {
	for _, f := range found {
		all = append(all, f.ID())
	}
	return all
}
