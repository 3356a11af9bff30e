package predecessor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

const (
	period  = time.Second // between two looks
	atStart = time.Second // how long a session that is about to open waits for a look
)

// Options are what this package works with.
type Options struct {
	// Dir is the directory of the files; it is made with mode 0700. "" = there is none.
	Dir    string
	Pool   *link.Pool
	Layout protocol.Layout
	Clock  link.Clock
	Log    *slog.Logger
	// Settle is called with what the file of a dead process proves, before its sessions end. It
	// returns an error if it is to be called again. Nil: no proof is looked at.
	Settle func(ctx context.Context, proof *protocol.Proof, sessions []string) error
}

// Predecessors are the other processes on a data directory. A nil one has none. It is safe for
// concurrent use.
type Predecessors struct {
	options *Options
	opened  chan *opening
	slots   slots

	// What Run works with, and Close after it.
	folder   *folder
	cluster  uint64
	sessions []string
	unnamed  bool // the file does not name all sessions
	told     bool // the log says that there is no file
}

// opening is a session that is about to open.
type opening struct {
	cluster  uint64
	sessions []string
	done     chan struct{}
}

// New returns predecessors that do nothing before Run.
func New(o *Options) *Predecessors { return &Predecessors{options: o, opened: make(chan *opening)} }

// Opening is called with each session of this process before it is written into etcd, and with the
// session before, whose locks it may have to adopt; "" = there was none. cluster is the ID of the
// etcd cluster. It names the two in the file, instead of others, and ends the sessions of dead
// processes. It returns after a second at most: a disk, or an etcd, that hangs delays the session
// no longer, and what is left is done later.
func (p *Predecessors) Opening(ctx context.Context, cluster uint64, session, former string) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	o := &opening{cluster: cluster, sessions: []string{session}, done: make(chan struct{})}
	if former != "" {
		o.sessions = append(o.sessions, former)
	}
	select {
	case p.opened <- o:
	case <-ctx.Done():
		return
	}
	select {
	case <-o.done:
	case <-ctx.Done():
	}
}

// Run looks for dead processes once a second, until ctx ends.
func (p *Predecessors) Run(ctx context.Context) {
	if p == nil {
		return
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-p.opened:
			p.cluster, p.sessions, p.unnamed = o.cluster, o.sessions, true
			p.checkFiles(ctx)
			close(o.done)
		case <-tick.C:
			p.checkFiles(ctx)
		}
	}
}

// Close gives the file of this process up, after Run. With ended its session is over, and there is
// nothing left for a successor; otherwise that finds the file.
func (p *Predecessors) Close(ended bool) {
	if p != nil && p.folder != nil {
		p.slots.file.Store(nil)
		p.folder.close(ended && !p.slots.inUse())
	}
}

// checkFiles names the sessions of this process in its file, and ends those of dead processes.
func (p *Predecessors) checkFiles(ctx context.Context) {
	if p.folder == nil && p.unnamed {
		folder, err := openFolder(p.options.Dir)
		if err != nil {
			p.reportOnce(err)
			return
		}
		p.folder = folder
	}
	if p.folder == nil {
		return
	}
	if p.unnamed {
		err := p.folder.writeOwnFile(head{Cluster: p.cluster, Prefix: p.options.Layout.Root, Sessions: p.sessions})
		if p.unnamed = err != nil; err != nil {
			p.reportOnce(err)
		}
		p.slots.file.Store(p.folder.own)
	}
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	now := p.options.Clock.Now()
	for _, path := range p.folder.otherFiles(now) {
		o := p.folder.lockOrphan(path)
		switch {
		case o == nil:
		case o.head != nil && o.head.Prefix == p.options.Layout.Root && o.head.Cluster == p.cluster &&
			p.endOrphan(ctx, o):
			o.removeFile()
		default:
			o.unlockFile(now)
		}
	}
}

// reportOnce says once what this process cannot do.
func (p *Predecessors) reportOnce(err error) {
	if p.told {
		return
	}
	p.told = true
	p.options.Log.Info("session.file_unusable", "reason", err.Error(), "dir", p.options.Dir,
		"advice", "if this process is killed, its locks stay closed until its session expires (etcd.session_ttl), "+
			"and answers that etcd had not recorded are unknown: give it a data_dir on a local disk that it can "+
			"write to")
}

// endOrphan settles what the file of a dead process proves, and ends its sessions. It reports
// whether nothing is left to do.
func (p *Predecessors) endOrphan(ctx context.Context, o *orphan) bool {
	if err := p.settleProofs(ctx, o); err != nil {
		return false
	}
	for _, session := range o.head.Sessions {
		if !p.endSession(ctx, o.head.Cluster, session) {
			return false
		}
	}
	return true
}

// settleAtOnce is how many proofs are settled at a time, so that etcd commits them together.
const settleAtOnce = 32

func (p *Predecessors) settleProofs(ctx context.Context, o *orphan) error {
	if p.options.Settle == nil {
		return nil
	}
	proofs, err := o.readProofs()
	if err != nil {
		return err
	}
	errs := make([]error, len(proofs))
	var all sync.WaitGroup
	turns := make(chan struct{}, settleAtOnce)
	for i, proof := range proofs {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			errs[i] = p.options.Settle(ctx, proof, o.head.Sessions)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// endSession ends a session with its lease: with it go all keys that are on it, in one step, as
// when it expires.
func (p *Predecessors) endSession(ctx context.Context, cluster uint64, session string) bool {
	// etcd 3.7 leaves the lease out if only keys are asked for
	answer, err := p.options.Pool.Get(ctx, p.options.Layout.Alive(protocol.SessionAlive(session)))
	switch {
	case err != nil || answer.Header.ClusterId != cluster:
		return false
	case len(answer.Kvs) == 0:
		return true
	case p.options.Pool.EndLease(ctx, clientv3.LeaseID(answer.Kvs[0].Lease)) != nil:
		return false
	}
	p.options.Log.Info("session.predecessor_ended", "session", session)
	return true
}
