package virtual

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"hooklock/admin/report"
	"hooklock/idem"
	"hooklock/proxy/kept"
	"hooklock/proxy/requests"
)

// beside is what a process has beside its ledger: it counts, and it keeps requests in a folder that
// all processes share. A nil beside does nothing.
type beside struct {
	p       *process
	tally   *report.Tally
	keeper  *requests.Keeper
	archive *requests.Archive

	mu      sync.Mutex
	counted []time.Time // when the deliveries of the last moment were counted, with no outcome
}

// forgottenByKilled is what a killed process forgets of what it has counted with no outcome.
const forgottenByKilled = 2 * time.Second

func newBeside(p *process) *beside {
	began := time.Now()
	b := &beside{p: p, tally: report.New(p.name, time.Now, func() time.Duration { return time.Since(began) })}
	var routes []report.Route
	for _, r := range p.w.routes {
		routes = append(routes, report.Route{Name: r.name})
	}
	b.tally.SetRoutes(routes)
	var err error
	if b.keeper, err = requests.Open(requests.Options{Dir: filepath.Join(p.w.etcd.dir, "requests")}); err != nil {
		p.w.t.Error(err)
		return nil
	}
	b.archive = requests.NewArchive(b.keeper, requests.ArchiveOptions{
		Limits:  func() (int, int64) { return 1 << 20, 1 << 30 },
		OnError: func(err error) { p.w.fail("%s: keep requests: %v", p.name, err) },
	})
	p.carries.Go(func() { b.archive.Run(p.base, context.Background()) })
	return b
}

func (b *beside) close(ctx context.Context) {
	if b == nil {
		return
	}
	if err := b.keeper.Close(ctx); err != nil {
		b.p.w.fail("%s: close the folder of requests: %v", b.p.name, err)
	}
}

// note counts a delivery that was answered.
func (b *beside) note(e *event, got *reply) {
	if b == nil || got.decision == "" && !got.counted {
		return
	}
	b.p.w.truth.delivered(e.route)
	if b.p.net.isDead() {
		b.p.w.truth.mayLack(1)
		return
	}
	if !got.counted {
		b.mu.Lock()
		b.counted = append(b.latestLocked(), time.Now())
		b.mu.Unlock()
	}
	b.tally.Note(&report.Delivery{Route: e.route, Decision: got.decision, Carried: true, Status: got.status,
		EventID: e.id, Workflow: e.workflow, Counted: got.counted, Accepted: got.accepted, Verified: true})
}

func (b *beside) latestLocked() []time.Time {
	for len(b.counted) > 0 && time.Since(b.counted[0]) > forgottenByKilled {
		b.counted = b.counted[1:]
	}
	return b.counted
}

// killed notes what is lost of its counts.
func (b *beside) killed() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.p.w.truth.mayLack(len(b.latestLocked()))
}

// keep keeps the request of an execution that the service is about to be called for.
func (b *beside) keep(e *event, l *idem.Lock) {
	if b == nil || b.p.net.isDead() || l.Parked != nil && l.Parked.Tries > 1 {
		return
	}
	at := requests.PlaceOf(&l.ExecutionFacts)
	b.archive.Put(at, b.p.w.kind.retention, &kept.Request{Head: []byte("POST / HTTP/1.1\r\n\r\n"), Body: []byte(e.id),
		Arrived: e.sentAt})
	b.p.w.truth.keeps(at)
	if old := l.AttemptDroppedNext(); old != nil {
		b.archive.Drop(requests.Place{Execution: old.Execution, StartedAt: old.StartedAt})
	}
}
