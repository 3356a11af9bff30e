// Command peers is a service that runs each event once and each workflow one at a time without
// Hooklock, in the ways that one would else choose: `make bench-peers` (test/bench) compares them.
// It is a module of its own, so that what it brings along is no part of Hooklock's.
//
//	peers -as postgres -store 'postgres://bench@127.0.0.1:5432/postgres' -commits 2
//
// Each way lives in the service itself, as a library would, so it costs no hop. It prints the
// address where it takes deliveries: POST /hooks/<workflow> with an Idempotency-Key, answered when
// the outcome is committed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/valyala/fasthttp"
)

// answer is what the service answers to each event: to a copy, the kept one.
const answer = `{"received":true}`

// guard is a way to run an event once and its workflow alone.
type guard interface {
	// run calls work unless the event is known, and returns the answer when it is committed.
	run(ctx context.Context, workflow, event string, work func() []byte) ([]byte, error)
	close()
}

// ways are the guards, by the word that -as has for them.
var ways = map[string]func(ctx context.Context, store string, commits int) (guard, error){
	"postgres": openPostgres,
	"redis":    openRedis,
	"mutex":    openMutex,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	as := flag.String("as", "", "postgres, redis, mutex (of etcd) or restate")
	store := flag.String("store", "", "where it is: a URL of postgres or restate's admin API, host:port of redis or "+
		"etcd")
	commits := flag.Int("commits", 2, "of -as postgres: 1 keeps the work in the transaction of the record, 2 writes "+
		"down before it that the event begins")
	flag.Parse()
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if *as == "restate" {
		return serveRestate(ctx, ln, *store)
	}
	open, ok := ways[*as]
	if !ok {
		return fmt.Errorf("-as %q: want postgres, redis, mutex or restate", *as)
	}
	g, err := open(ctx, *store, *commits)
	if err != nil {
		return err
	}
	defer g.close()
	s := service{guard: g}
	server := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(r *fasthttp.RequestCtx) { s.handle(ctx, r) }}
	fmt.Println(ln.Addr())
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	if err := server.Serve(ln); ctx.Err() == nil {
		return err
	}
	return nil
}

// service is what is guarded. It sees to it that a workflow is alone, or the guard's figures mean
// nothing.
type service struct {
	guard   guard
	running sync.Map // by workflow
}

func (s *service) handle(ctx context.Context, r *fasthttp.RequestCtx) {
	workflow, ok := strings.CutPrefix(string(r.Path()), "/hooks/")
	event := string(r.Request.Header.Peek("Idempotency-Key"))
	if !ok || event == "" {
		r.SetStatusCode(fasthttp.StatusBadRequest)
		return
	}
	decision := "replayed"
	body, err := s.guard.run(ctx, workflow, event, func() []byte {
		decision = "executed"
		if _, another := s.running.LoadOrStore(workflow, true); another {
			decision = "overlapped"
		}
		defer s.running.Delete(workflow)
		return []byte(answer)
	})
	switch {
	case errors.Is(err, errUnknown):
		r.Error(err.Error(), fasthttp.StatusConflict)
	case err != nil:
		r.Error(err.Error(), fasthttp.StatusServiceUnavailable)
	default:
		r.Response.Header.Set("Bench-Decision", decision)
		r.SetContentType("application/json")
		r.SetBody(body)
	}
}

// errUnknown is of an event that began and has not ended: its process died.
var errUnknown = errors.New("the event began, and nobody knows how it ended")
