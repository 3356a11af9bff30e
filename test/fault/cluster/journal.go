package cluster

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
)

// Journal is everything that happened below a prefix of etcd, as it happened.
type Journal struct {
	tb     testing.TB
	client *clientv3.Client
	prefix string

	mu     sync.Mutex
	events []Change
	news   chan struct{}
}

// Change is one write.
type Change struct {
	Key      string // below "<prefix>/v1/"
	Deleted  bool
	Value    Value
	Created  int64 // create revision
	Revision int64
	At       time.Time // when the journal heard of it
}

// Value is the part of locks and records that the suite reads.
type Value struct {
	Execution string `json:"executionId"`
	EventID   string `json:"eventId"`
	Workflow  string `json:"workflow"`
	Status    string `json:"status"`
	Outcome   string `json:"outcome"`
	Attempt   int    `json:"attempt"`
	Kept      bool   `json:"kept"`
	Cooling   bool   `json:"cooling"`
	Alive     string `json:"alive"`
	Holder    string `json:"holder"`
	Token     int64  `json:"token"`
	Parked    Parked `json:"parked"` // zero: it is not parked
}

// Parked is the part of a parked execution's lock that the suite reads.
type Parked struct {
	On      string `json:"on"`
	Tries   int    `json:"tries"`
	Trying  bool   `json:"trying"`
	Blocked string `json:"blocked"`
}

// Ended is the end of an execution in short: "FAILED unknown".
func (v Value) Ended() string { return strings.TrimSpace(v.Status + " " + v.Outcome) }

// NewJournal follows prefix from now on.
func NewJournal(tb testing.TB, client *clientv3.Client, prefix string) *Journal {
	tb.Helper()
	j := &Journal{tb: tb, client: client, prefix: prefix + "/v1/", news: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	now, err := client.Get(ctx, j.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		tb.Fatalf("read etcd: %v", err)
	}
	changes := client.Watch(ctx, j.prefix, clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for batch := range changes {
			j.add(batch.Events)
		}
	}()
	tb.Cleanup(func() { cancel(); <-done })
	return j
}

func (j *Journal) add(events []*clientv3.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range events {
		c := Change{
			Key: strings.TrimPrefix(string(e.Kv.Key), j.prefix), Deleted: e.Type == mvccpb.DELETE,
			Created: e.Kv.CreateRevision, Revision: e.Kv.ModRevision, At: time.Now(), Value: valueOf(e.Kv),
		}
		j.events = append(j.events, c)
	}
	close(j.news)
	j.news = make(chan struct{})
}

func valueOf(kv *mvccpb.KeyValue) (v Value) {
	text := kv.Value // a deletion has none
	if r, _, err := protocol.DecodeRecord(kv); err == nil {
		text, _ = json.Marshal(r)
		v.Token = r.Token
	}
	_ = json.Unmarshal(text, &v)
	return v
}

// Await waits for a change that holds, from the beginning of the journal on.
func (j *Journal) Await(what string, holds func(Change) bool) Change {
	j.tb.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for from := 0; ; {
		j.mu.Lock()
		news := j.news
		for ; from < len(j.events); from++ {
			if c := j.events[from]; holds(c) {
				j.mu.Unlock()
				return c
			}
		}
		j.mu.Unlock()
		select {
		case <-news:
		case <-late.C:
			j.tb.Fatalf("etcd did not see within %v: %s", Patience, what)
		}
	}
}

// All is what has happened so far.
func (j *Journal) All() []Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Change(nil), j.events...)
}

// LockOf is the kind of change that gives an event the lock of its workflow.
func LockOf(event string) func(Change) bool {
	return func(c Change) bool {
		return strings.HasPrefix(c.Key, "locks/") && !c.Deleted && !c.Value.Cooling && c.Value.EventID == event
	}
}

// RecordOf is the kind of change that writes the record of an event.
func RecordOf(event string) func(Change) bool {
	return func(c Change) bool {
		return strings.HasPrefix(c.Key, protocol.KindRecords) && !c.Deleted && c.Value.EventID == event
	}
}

// FreedAfter is the kind of change that takes the lock away that revision gave.
func FreedAfter(lock Change) func(Change) bool {
	return func(c Change) bool { return c.Key == lock.Key && c.Deleted && c.Revision > lock.Revision }
}

// Left is what stands in etcd now below a kind ("locks/", "queue/"): keys and values.
func (j *Journal) Left(kind string) map[string]Value {
	j.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	answer, err := j.client.Get(ctx, j.prefix+kind, clientv3.WithPrefix())
	if err != nil {
		j.tb.Fatalf("read etcd: %v", err)
	}
	left := map[string]Value{}
	for _, kv := range answer.Kvs {
		left[strings.TrimPrefix(string(kv.Key), j.prefix)] = valueOf(kv)
	}
	return left
}
