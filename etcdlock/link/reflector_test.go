package link

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
)

// picture is what a Reflector has told of the keys below /k/.
type picture struct {
	pool   *Pool
	idle   []bool
	rounds atomic.Int32

	mu    sync.Mutex
	keys  map[string]string
	lists int
}

func (p *picture) is(want string, lists int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := ""
	for _, key := range []string{"a", "b", "c"} {
		keys += p.keys[key]
	}
	return keys == want && p.lists == lists
}

// reflect returns a reflector of the keys below /k/, at an etcd that can be reached on two ways: on
// the first one it can be disturbed.
func reflect(t *testing.T, e *etcdtest.Etcd, wire *etcdtest.Wire) (*Reflector, *picture) {
	pool, err := OpenPool(&Target{Endpoints: []string{wire.Endpoint, e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	p := &picture{keys: map[string]string{}}
	p.pool = pool
	return &Reflector{Pool: pool, On: OfWaits, Source: p}, p
}

// List implements Source.
func (p *picture) List(ctx context.Context) (int64, error) {
	answers, revision, err := p.pool.Read(ctx, clientv3.OpGet("/k/", clientv3.WithPrefix()))
	if err != nil {
		return 0, err
	}
	listed := map[string]string{}
	for _, kv := range answers[0].GetResponseRange().Kvs {
		listed[strings.TrimPrefix(string(kv.Key), "/k/")] = string(kv.Value)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys, p.lists = listed, p.lists+1
	return revision, nil
}

// Watches implements Source.
func (p *picture) Watches(from int64) []Watch {
	return []Watch{{Key: "/k/", Opts: []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(from)},
		News: func(e *clientv3.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.keys[strings.TrimPrefix(string(e.Kv.Key),
				"/k/")] = string(e.Kv.Value); e.Type == clientv3.EventTypeDelete {
				delete(p.keys, strings.TrimPrefix(string(e.Kv.Key), "/k/"))
			}
		}}}
}

// Idle implements Source: in each round as idle says.
func (p *picture) Idle() bool { return p.idle[p.rounds.Add(1)-1] }

func TestAReflectorListsOnceAndAgainWhenItsWatchBreaks(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	r, p := reflect(t, e, wire)
	put := func(key, value string) {
		t.Helper()
		if _, err := e.Client.Put(t.Context(), "/k/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "1")
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); r.Run(ctx, 0) }()
	defer func() { stop(); <-over }()
	etcdtest.Eventually(t, "the list", func() bool { return p.is("1", 1) })
	put("b", "2")
	etcdtest.Eventually(t, "what came after the list", func() bool { return p.is("12", 1) })

	wire.Blackhole(true)
	put("a", "3")
	if _, err := e.Client.Delete(t.Context(), "/k/b"); err != nil {
		t.Fatal(err)
	}
	e.Compact(t)
	wire.Blackhole(false)
	wire.Reset()
	etcdtest.Eventually(t, "what was compacted meanwhile", func() bool { return p.is("3", 2) })
	put("c", "4")
	etcdtest.Eventually(t, "what came after that", func() bool { return p.is("34", 2) })

	_, at, err := r.Pool.Current()
	if err != nil {
		t.Fatal(err)
	}
	r.Pool.failOverFrom(at) // ends its watches
	etcdtest.Eventually(t, "the list of the next member", func() bool { return p.is("34", 3) })
	put("b", "5")
	etcdtest.Eventually(t, "what came after the third list", func() bool { return p.is("354", 3) })
}

func TestAReflectorThatKnowsTheKeysAsOfARevisionDoesNotListThem(t *testing.T) {
	e := etcdtest.Start(t)
	r, p := reflect(t, e, etcdtest.NewWire(t, e.Endpoint))
	put, err := e.Client.Put(t.Context(), "/k/a", "1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); r.Run(ctx, put.Header.Revision-1) }()
	defer func() { stop(); <-over }()
	etcdtest.Eventually(t, "what came after that revision", func() bool { return p.is("1", 0) })
}

func TestAReflectorEndsAfterTwoIdleRoundsInARow(t *testing.T) {
	e := etcdtest.Start(t)
	r, p := reflect(t, e, etcdtest.NewWire(t, e.Endpoint))
	r.Round, p.idle = 1, []bool{false, true, false, true, true}
	r.Run(t.Context(), 0)
	if n := int(p.rounds.Load()); n != len(p.idle) || !p.is("", 1) {
		t.Errorf("it ended after %d rounds and %d lists", n, p.lists)
	}
}
