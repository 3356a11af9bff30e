package admin

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

const patience = 40 * time.Second

// callbackKey is that of every delivery of these tests.
const callbackKey = "ABCDEFGHIJKLMNOP"

// fleet is two processes on one etcd: deliveries run in the first, and the API is asked at the
// second.
type fleet struct {
	*rig
	first, second *etcdlock.Store
	unread        atomic.Int64 // so many requests cannot be read
	etcd          *etcdtest.Etcd
}

func newFleet(t testing.TB, change func(*Options)) *fleet {
	t.Helper()
	f := &fleet{etcd: etcdtest.Start(t)}
	f.first, f.second = f.open(t, "first"), f.open(t, "second")
	f.rig = newRig(t, f.second, func(o *Options) {
		o.RequestTimeout = patience // the default is less than an etcd needs now and then where CPU is scarce
		if change != nil {
			change(o)
		}
	})
	return f
}

func (f *fleet) open(t testing.TB, holder string) *etcdlock.Store {
	t.Helper()
	return f.openAt(t, holder, f.etcd.Endpoint)
}

func (f *fleet) openAt(t testing.TB, holder, endpoint string) *etcdlock.Store {
	t.Helper()
	return f.openWith(t, etcdlock.Options{Endpoints: []string{endpoint}, Holder: holder})
}

func (f *fleet) openWith(t testing.TB, o etcdlock.Options) *etcdlock.Store {
	t.Helper()
	o.Limit, o.Rekeep = func(string, idem.Slot) int { return 1 }, rekeep
	o.Archived = func(_ context.Context, r *idem.Record, _ idem.ExecutionID) (idem.StoredRequest, *idem.ParkedEntry,
		error) {
		switch {
		case r.Route == "" || r.EventID == "unkept":
			return idem.StoredRequest{}, nil, idem.ErrNoRequest
		case f.unread.Add(-1) >= 0:
			return idem.StoredRequest{}, nil, errors.New("connection refused")
		}
		return idem.StoredRequest{Value: []byte("a|b"), Bytes: 3}, &idem.ParkedEntry{MaxAge: time.Hour}, nil
	}
	s, err := etcdlock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// rekeep is for what keptRequests reads.
func rekeep(_ context.Context, _, _ idem.ExecutionID, kept []byte) (idem.StoredRequest, error) {
	if !bytes.Contains(kept, []byte("|")) {
		return idem.StoredRequest{}, errors.New("key k7 is missing")
	}
	return idem.StoredRequest{Value: kept, Bytes: int64(len(kept))}, nil
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// lockOf is what a delivery of a route puts into the ledger.
func lockOf(workflow, event string) idem.Lock {
	key := sha256.Sum256([]byte(event))
	name := idem.MakeKey(idem.HashEventID(event), [16]byte(key[:16]))
	var random [4]byte
	_, _ = rand.Read(random[:])
	hash := sha256.Sum256([]byte(callbackKey))
	return idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID(workflow, name, random), Scope: idem.Scope{Workflow: workflow, Key: name},
			Route: "route", EventID: event,
			Fingerprint: idem.Fingerprint{1}, CallbackHash: hex.EncodeToString(hash[:10]), Attempt: 1,
			StartedAt:   time.Now(),
			TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Retention: time.Hour,
		},
		MaxDuration: time.Hour, ReplayBody: 64 << 10, ReplayFor: time.Minute,
	}
}

// applied repeats what is not applied, and provably never will be, because etcd has not answered in
// time: no answer is late where CPU is not scarce.
func (f *fleet) applied(try func(context.Context) error) error {
	f.t.Helper()
	ctx := within(f.t)
	err := try(ctx)
	for errors.Is(err, idem.ErrNotClaimed) && ctx.Err() == nil {
		err = try(ctx)
	}
	return err
}

// enqueue takes a place in the queue at the first process.
func (f *fleet) enqueue(l idem.Lock, behind int64) (place idem.QueueEntry, seen *idem.Obstacle, err error) {
	f.t.Helper()
	err = f.applied(func(ctx context.Context) (err error) {
		place, seen, err = f.first.Enqueue(ctx, l, 0, behind)
		return err
	})
	return place, seen, err
}

// delivery is one that runs.
type delivery struct {
	idem.RunningLock
	id    string
	token int64
	stop  chan error // why it is told to stop
}

// run starts a delivery at the first process.
func (f *fleet) run(workflow, event string) *delivery {
	f.t.Helper()
	return f.start(lockOf(workflow, event), 0)
}

func (f *fleet) start(l idem.Lock, prev int64) *delivery {
	f.t.Helper()
	var held idem.RunningLock
	var seen *idem.Obstacle
	err := f.applied(func(ctx context.Context) (err error) {
		held, seen, err = f.first.Claim(ctx, l, prev)
		return err
	})
	if err != nil || held == nil {
		f.t.Fatalf("claim: %+v %v", seen, err)
	}
	d := &delivery{RunningLock: held, id: string(l.Execution), token: held.Lock().Token, stop: make(chan error, 1)}
	held.OnStop(func(cause error) { d.stop <- cause })
	return d
}

// hold runs a delivery whose upstream has answered that the work goes on.
func (f *fleet) hold(workflow, event string, ttl time.Duration) *delivery {
	f.t.Helper()
	d := f.run(workflow, event)
	if err := d.Hold(within(f.t), ttl); err != nil {
		f.t.Fatal(err)
	}
	return d
}

// settle ends a delivery.
func (f *fleet) settle(d *delivery, e idem.End) *idem.Record {
	f.t.Helper()
	e.FinishedAt = time.Now()
	rec, err := d.Settle(within(f.t), e)
	if err != nil {
		f.t.Fatal(err)
	}
	return rec
}

func success() idem.End {
	return idem.End{Status: idem.Success, Outcome: idem.Executed, Remembered: true,
		Answer: &idem.Answer{Status: 200, Bytes: 4, Whole: true, Body: []byte("done")}}
}

func failure() idem.End {
	return idem.End{Status: idem.Failed, Outcome: idem.Unknown,
		Error: &idem.Failure{Code: "upstream_timeout", Detail: "no answer in 30s"}}
}

// stopped waits until a delivery is told to stop.
func (f *fleet) stopped(d *delivery) error {
	f.t.Helper()
	select {
	case cause := <-d.stop:
		return cause
	case <-within(f.t).Done():
		f.t.Fatal("the delivery was never told to stop")
	}
	return nil
}

func (f *fleet) execution(id string) *reply {
	f.t.Helper()
	return f.want(200, "", "GET", "/v1/executions/"+id, readToken1, "")
}

// post asks for something about an execution: cancel with the token ops, callbacks with the
// delivery's key.
func (f *fleet) post(status int, code string, d *delivery, what, body string) *reply {
	f.t.Helper()
	token := callbackKey
	if what == "cancel" {
		token = opsToken
	}
	return f.want(status, code, "POST", "/v1/executions/"+d.id+"/"+what, token, body)
}

// bodyOf makes the body of a callback; more are further members.
func bodyOf(d *delivery, more string) string { return fmt.Sprintf(`{"token":%d%s}`, d.token, more) }
