package etcdlock

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/callback"
	"hooklock/etcdlock/carry"
	"hooklock/etcdlock/claim"
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/locker"
	"hooklock/etcdlock/operate"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/predecessor"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/queue"
	"hooklock/etcdlock/reap"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// Options say which etcd a Store uses, and which of its callers hear of changes. Only Endpoints or
// Client must be set. No callback may block.
type Options struct {
	// Endpoints are the members of etcd: host:port, or http(s)://host:port. Each gets a connection
	// of its own.
	Endpoints []string
	// Client is used instead of Endpoints, for an etcd in this process. The Store does not close
	// it.
	Client *clientv3.Client

	// RequestTimeout is how long a caller waits for etcd, at least 2 s. A single request gets a
	// part of it, so an etcd that is far away needs more. 0 is 2 s.
	RequestTimeout time.Duration

	Username string      // Username is the etcd user. "" if etcd asks for none.
	Password string      // Password is that of the user.
	TLS      *tls.Config // TLS configures connections to etcd. nil is plain text.

	// Prefix begins every key. Stores share locks if they have the same prefix. "" is "/hooklock".
	Prefix string
	// SessionTTL is how long the locks of a dead process stay closed, in whole seconds, at least 2
	// s. 0 is 15 s.
	SessionTTL time.Duration
	// Alone says that this is the only Store on its etcd, as on an embedded one. The locks of the
	// process before it are then freed at the start, and not a TTL later.
	Alone bool
	// Dir is a folder on this machine in which each process has a file. A process that starts or
	// runs with the same folder ends the session of one that died there, so that its locks are
	// freed at once. It also records what the dead process had been answered and etcd does not
	// have. "" is none.
	Dir string
	// Holder names this process to operators, usually as host/pid. The name of the session is
	// appended.
	Holder string
	Logger *slog.Logger // Logger gets log lines. nil discards them.

	// OnOperation is called after each request to etcd except watches.
	OnOperation func(link.Operation)
	// OnReaped is called after this process has ended the execution of a lock whose owner is dead.
	OnReaped func(*idem.Lock)
	// OnEnded is called after this process has ended an execution of a route of which no call of
	// idem.RunningLock returns the end: its service has completed a hold, a person has released its
	// lock by force, or an end that returned ErrNotRecorded, or a release without an answer, is
	// resolved. recorded is false if the end will never be in etcd, because that is full; the lock
	// is free then.
	OnEnded func(ended *idem.Record, recorded bool)
	// OnReduced is called after etcd has refused a record for its size (--max-request-bytes), with
	// the size of that request. The record then has the status of the answer alone.
	OnReduced func(record *idem.Record, bytes int)
	// OnSession is called after a session has opened, and after one was lost. What was read from
	// etcd before a loss may be out of date after it. Calls do not overlap.
	OnSession func(SessionEvent)
	// Rekeep makes, from the stored request of one execution, that of another one, because a sealed
	// request, or one outside of etcd, is bound to its execution. It may be longer, because there
	// may be a key now. MaxAge of the result is ignored. It returns idem.ErrNoRequest if the bytes
	// are gone. nil takes the value as it is.
	Rekeep func(ctx context.Context, from, to idem.ExecutionID, value []byte) (idem.StoredRequest, error)
	// Archived is Rekeep for an execution of which etcd has no request, because it was settled or
	// not parked, and whose route keeps the requests of all events elsewhere. It also returns how
	// the other execution is to run: MaxAge and the fields after it. nil means that none is kept.
	Archived func(ctx context.Context, r *idem.Record, to idem.ExecutionID) (idem.StoredRequest, *idem.ParkedEntry,
		error)
	// Erase deletes what is stored for an execution outside of etcd; value is what etcd had of it.
	// nil means that nothing is.
	Erase func(ctx context.Context, id idem.ExecutionID, value []byte) error
	// OnPause is called after this process has heard of a pause, or of its end.
	OnPause func(p idem.Pause, over bool)
	// Limit returns how many slots a limit has now, for an execution of that route; 0 means that
	// there is no such limit, or none any more. It is called each time, because a reload may change
	// it. nil means that there are no limits.
	Limit func(route string, slot idem.Slot) int
	// OnForget is called after an operator has removed the record of an execution.
	OnForget func(idem.ExecutionID)
	// OnReset is called if calls of OnForget may have been missed: drop all remembered records.
	OnReset func()
	// Follow returns how the refused events of a route are followed until they come again or are
	// possibly lost; byPayload says that they have no event ID. A result with Patience 0 means that
	// they are not followed, or that the route is not known. nil follows none.
	Follow func(route string, byPayload bool) idem.Following
	// OnLost is called with each event that was refused and has not come again in time.
	OnLost func(idem.LostEvent)
	// Counted returns what this process has counted of its routes since the call before, without
	// what comes with the outcome of an execution (idem.RunningLock.Count). It is called every
	// second, and with each request that commits outcomes. nil means that nothing is counted.
	Counted func() []idem.RouteCounts
	// Describe returns what this process says of itself to operators at other processes, as JSON.
	// The text changes only if what it says does. It is called every other second. nil says
	// nothing.
	Describe func() []byte

	// Clock is how the Store reads time. The zero value reads the two clocks of this machine.
	Clock link.Clock
}

// WithDefaults returns the options with the defaults of what is not set.
func (o *Options) WithDefaults() Options {
	d := *o
	if d.Prefix == "" {
		d.Prefix = defaultPrefix
	}
	if d.SessionTTL == 0 {
		d.SessionTTL = defaultTTL
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Clock.Now == nil {
		d.Clock = link.SystemClock()
	}
	return d
}

// Target returns the etcd and the user that the options name.
func (o *Options) Target() *link.Target {
	return &link.Target{Endpoints: o.Endpoints, Client: o.Client, RequestTimeout: o.RequestTimeout,
		Username: o.Username, Password: o.Password, TLS: o.TLS, Clock: o.Clock, OnOperation: o.OnOperation}
}

// SessionEvent says that the session of this process has opened, or was lost.
type SessionEvent struct {
	Opened  bool   // false: it was lost
	Session string // the name of the session
	Reason  error  // why it was lost
	// How many running locks an opened session is going to take over from the one before.
	Adopted int
}

// ErrStoreFull means that the space quota of etcd is used up, and that the outcome that it refused
// will not be recorded.
var ErrStoreFull = owned.ErrStoreFull

const (
	defaultPrefix = "/hooklock"
	defaultTTL    = 15 * time.Second
	minTTL        = 2 * time.Second // etcd's own, with its default election timeout
)

// Store keeps the session of a process. Locker is a lock for Go programs; Ledger runs executions,
// and Control shows and ends them, for Hooklock. Open makes a Store, and its owner closes it.
type Store struct {
	*core
	*Ledger
	*Control
	*Locker
}

// The lock for Go programs; package locker documents the methods.
type (
	// Locker takes locks: Do runs a function under one, Acquire waits for one, TryAcquire does not
	// wait.
	Locker = locker.Locker
	// Lock is the lock of a workflow that this process has: Token, Lost and Unlock.
	Lock = locker.Lock
	// HeldError is the error of TryAcquire if another execution has the lock.
	HeldError = locker.HeldError
)

// The errors of Locker and Lock, beside that of the context.
var (
	// ErrLockLost means that this process has lost the lock, or cannot confirm that it has it.
	// Another process may have it.
	ErrLockLost = locker.ErrLockLost
	// ErrUnavailable means that etcd does not answer, or refuses, so no lock was taken. The text
	// says why.
	ErrUnavailable = locker.ErrUnavailable
	// ErrNotReleased means that the lock is not given back yet, because etcd does not answer. The
	// Store goes on trying until it is closed.
	ErrNotReleased = locker.ErrNotReleased
)

// Token returns the token of the lock that Do runs its function under. The function sends it along
// with its work, so that the receiver can refuse a smaller one. It returns 0 if ctx is not from Do.
func Token(ctx context.Context) int64 { return locker.Token(ctx) }

// core is what the faces of a Store share. Its methods are for this package alone.
type core struct {
	options  Options
	layout   protocol.Layout
	clock    link.Clock
	writer   string // marks the records that this Store wrote
	pool     *link.Pool
	sender   *commit.Sender
	keeper   *session.Keeper
	view     *view.View
	leases   *commit.Leases
	finisher *finish.Finisher
	reaper   *reap.Reaper
	sweeper  *reap.Sweeper
	release  *link.Releases
	finder   *operate.Finder
	// questions are what the service is to be asked about unknown outcomes.
	questions *operate.Questions

	operator *operate.Operator

	predecessors *predecessor.Predecessors // nil if Alone, and there is no Dir

	duplicates *history.Duplicates
	audits     *history.Audits
	signatures *history.Signatures
	counts     *history.Counts
	replicas   *history.Replicas
	follower   *history.Follower

	tasks *commit.Tasks
	// the keeper, predecessors, the view, the sweeper, the looks at releases and at holds,
	// duplicates, audits, counts and replicas
	keeping *commit.Tasks
	closing sync.Once

	own *owned.Locks
}

// Open makes a Store. It does not wait for etcd: the session opens in the background, for as long
// as that takes (WaitReady). An error is about the options.
func Open(o Options) (*Store, error) {
	o = o.WithDefaults()
	if o.SessionTTL < minTTL || o.SessionTTL%time.Second != 0 {
		return nil, fmt.Errorf("session TTL of %v: give whole seconds, at least %v", o.SessionTTL, minTTL)
	}
	s := &core{
		options: o, layout: protocol.NewLayout(o.Prefix), clock: o.Clock, writer: session.NewName(),
	}
	target := s.options.Target()
	target.OnBack = s.wentBack
	p, err := link.OpenPool(target)
	if err != nil {
		return nil, err
	}
	s.tasks, s.keeping = commit.NewTasks(), commit.NewTasks()
	s.pool, s.sender = p, commit.NewSender(p, o.Clock, s.tasks)
	around := &surroundings{s}
	s.view = view.New(&view.Options{
		Pool: p, Sender: s.sender, Tasks: s.tasks, Layout: s.layout, Process: around,
	})
	read := &history.Options{
		Pool: p, Layout: s.layout, Clock: o.Clock, Writer: s.writer, Tasks: s.keeping, Sessions: s.view.Sessions,
		Process: around,
	}
	s.duplicates, s.audits = history.NewDuplicates(read), history.NewAudits(read)
	s.signatures = history.NewSignatures(read)
	s.counts = history.NewCounts(read)
	s.replicas = history.NewReplicas(read, o.Describe, s.sessionName)
	s.leases = commit.NewLeases(p.NewLease, read, o.Clock, s.tasks)
	s.finisher = &finish.Finisher{Pool: p, Leases: s.leases, Layout: s.layout, Clock: o.Clock, Sender: s.sender}
	s.reaper = reap.NewReaper(&reap.Options{
		Finisher: s.finisher, Tasks: s.tasks, Sessions: s.view.Sessions, Writer: s.writer, Process: around,
	})
	s.sweeper = reap.NewSweeper(s.reaper)
	s.release = link.NewReleases(p, o.Endpoints, o.Logger)
	s.keeper = s.newKeeper()
	s.own = owned.New(&owned.Options{
		Pool: p, Sender: s.sender, Tasks: s.tasks, Leases: s.leases, Layout: s.layout, Clock: o.Clock, Writer: s.writer,
		Keeper: s.keeper, Finisher: s.finisher,
		View: s.view, Listener: around, Predecessors: s.predecessors,
		Correct: func(ctx context.Context, lost *idem.Lock, end idem.End) (*idem.Record, error) {
			return s.operator.Correct(ctx, lost, end)
		},
	})
	ledger := s.newLedger(claim.New(s.claimOptions()))
	locks := &locker.Locks{Ledger: ledger, Keeper: s.keeper, Clock: s.clock, Pool: p}
	asked := &operate.Options{
		Finisher: s.finisher, Tasks: s.tasks, Reader: history.NewReader(read, s.duplicates), Duplicates: s.duplicates,
		Audits: s.audits, Reaper: s.reaper,
		Parked: s.view.Parked, Process: around,
	}
	s.finder = operate.NewFinder(asked)
	s.operator = operate.NewOperator(asked)
	s.questions = operate.NewQuestions(s.operator)
	control := &Control{
		core: s, Reader: asked.Reader, Finder: s.finder, Operator: s.operator,
		Callbacks: callback.New(&callback.Options{
			Claims: ledger.claims, Locks: locks, Pool: p, Sender: s.sender, Tasks: s.tasks, Layout: s.layout,
			Clock: s.clock, Finisher: s.finisher,
			Reader: asked.Reader, Reaper: s.reaper, Own: s.own,
		}),
	}
	s.follower = history.NewFollower(asked.Reader)
	control.holdings = reap.NewHoldings(s.reaper, s.keeper, s.finder.Execution)
	for _, run := range []func(context.Context){
		s.predecessors.Run, s.keeper.Run, s.sweeper.Run, s.view.Run, s.release.Run, control.holdings.Run,
		s.duplicates.Run, s.audits.Run, s.signatures.Run, s.replicas.Run, s.follower.Run,
	} {
		s.keeping.Start(run)
	}
	if o.Counted != nil {
		s.sender.CountWith(s.counts)
		s.keeping.Start(s.counts.Run)
	}
	return &Store{s, ledger, control, locker.New(locks)}, nil
}

func (s *core) claimOptions() *claim.Options {
	return &claim.Options{
		Pool: s.pool, Sender: s.sender, Tasks: s.tasks, Leases: s.leases, Layout: s.layout, Keeper: s.keeper,
		View: s.view, Own: s.own, Reaper: s.reaper,
	}
}

func (s *core) newLedger(claims *claim.Claims) *Ledger {
	return &Ledger{
		core: s, claims: claims,
		places: queue.New(&queue.Options{
			Claims: claims, Pool: s.pool, Sender: s.sender, Tasks: s.tasks, Leases: s.leases, Layout: s.layout,
			Clock: s.clock, View: s.view, Own: s.own,
			Reaper: s.reaper, Writer: s.writer,
		}),
		carrier: carry.New(&carry.Options{
			Claims: claims, Pool: s.pool, Sender: s.sender, Tasks: s.tasks, Layout: s.layout, Clock: s.clock,
			Keeper: s.keeper, View: s.view, Own: s.own,
			Reaper: s.reaper,
		}),
	}
}

func (s *core) newKeeper() *session.Keeper {
	if !s.options.Alone || s.options.Dir != "" {
		s.predecessors = predecessor.New(&predecessor.Options{Dir: s.options.Dir, Pool: s.pool, Layout: s.layout,
			Clock: s.clock, Log: s.options.Logger, Settle: s.settleProven})
	}
	return session.NewKeeper(session.Options{
		Pool: s.pool, Layout: s.layout, Clock: s.clock, TTL: s.options.SessionTTL, Holder: s.options.Holder,
		Alone: s.options.Alone,
		Live:  s.view.Sessions, Pauses: s.view.Pauses,
		Predecessors: s.predecessors,
		On:           sessionListener{s},
	})
}

// settleProven settles what the file of a dead process proves.
func (s *core) settleProven(ctx context.Context, proof *protocol.Proof, sessions []string) error {
	end := proof.End
	end.Answer = &idem.Answer{Status: proof.Status, Bytes: proof.Bytes}
	record, err := s.operator.Prove(ctx, proof.Execution, end, proof.Counts, sessions)
	if record != nil {
		s.options.Logger.Info("session.predecessor_proved", "execution", string(record.Execution),
			"status", string(record.Status))
	}
	return err
}

func (s *core) reportReset() {
	if s.options.OnReset != nil {
		s.options.OnReset()
	}
}

// WaitReady waits until a session is live. Its error is that of ctx, with the reason why none is.
func (s *Store) WaitReady(ctx context.Context) error { return s.keeper.WaitReady(ctx) }

// Ready returns nil if a session is live, else the reason why none is.
func (s *Store) Ready() error {
	_, _, err := s.keeper.Current()
	return err
}

// SessionTTLRemaining returns for how long the session may act without another renewal; 0 if there
// is none.
func (s *Store) SessionTTLRemaining() time.Duration {
	session, _, err := s.keeper.Current()
	if err != nil {
		return 0
	}
	return max(0, session.Remaining())
}

// sessionName returns the name of the live session, or "".
func (s *core) sessionName() string {
	session, _, err := s.keeper.Current()
	if err != nil {
		return ""
	}
	return session.Name
}

// LastWords returns for how much longer than ctx Close may take if etcd does not answer.
func (s *Store) LastWords() time.Duration { return s.pool.Txn + s.pool.Attempt }

// Close waits until all transactions without an answer are resolved, at most until ctx ends, and
// ends the session. Locks that the process still has are lost, and other processes can take them at
// once. An error says what was left unresolved. Only the first call does anything.
func (s *Store) Close(ctx context.Context) (err error) {
	s.closing.Do(func() {
		s.duplicates.Finish(ctx)
		s.audits.Finish(ctx)
		s.signatures.Finish(ctx)
		s.replicas.Finish(ctx)
		if left := s.tasks.Close(ctx); left != nil {
			err = fmt.Errorf("close the store with unanswered transactions left (does etcd answer?); locks that "+
				"they may have taken end with the session: %w", left)
		}
		for _, h := range s.own.All() {
			h.LeaveCounts()
			h.Stop(fmt.Errorf("%w: %w", idem.ErrLockLost, commit.ErrClosed))
		}
		s.sender.Close()
		s.counts.Finish(ctx)
		s.stopKeeping()
		s.writeIndexes(ctx)
		s.predecessors.Close(s.keeper.Leave())
		err = errors.Join(err, s.pool.Close())
	})
	return err
}

// stopKeeping ends what runs as long as the Store is open, and waits for it.
func (s *core) stopKeeping() {
	over, end := context.WithCancel(context.Background())
	end()
	_ = s.keeping.Close(over)
}

// writeIndexes writes the indexes of the leases that this process has put keys on. Without them, a
// search reads the keys.
func (s *core) writeIndexes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.pool.Txn)
	defer cancel()
	s.leases.Finish(ctx)
	s.duplicates.Index(ctx)
}

// Active returns how many locks this process has, with those whose end is not in etcd yet, and when
// the oldest of them was taken; the zero time if there is none.
func (s *Store) Active() (n int, since time.Time) {
	locks := s.own.All()
	for _, l := range locks {
		if at := l.Lock().StartedAt; since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return len(locks), since
}

// Running is Active without parked executions between two tries: these keep their lock, and nothing
// runs.
func (s *Store) Running() (n int, since time.Time) {
	for _, l := range s.own.All() {
		lock := l.Lock()
		if lock.Parked != nil && !lock.Parked.Trying {
			continue
		}
		if n++; since.IsZero() || lock.StartedAt.Before(since) {
			since = lock.StartedAt
		}
	}
	return n, since
}

// SlotsHere returns, by limit, how many slots the executions of this process have, and how many of
// them wait for one.
func (s *Store) SlotsHere() []idem.SlotCount {
	counts := map[string]idem.SlotCount{}
	for _, l := range s.own.All() {
		for _, slot := range l.Lock().Slots {
			if slot.Index >= 0 {
				c := counts[slot.Rule]
				c.Taken++
				counts[slot.Rule] = c
			}
		}
	}
	for rule, n := range s.view.Slots.Waiting() {
		c := counts[rule]
		c.Waiting = n
		counts[rule] = c
	}
	here := make([]idem.SlotCount, 0, len(counts))
	for rule, c := range counts {
		c.LimitName = cmp.Or(rule, "lock.limit")
		here = append(here, c)
	}
	slices.SortFunc(here, func(a, b idem.SlotCount) int { return strings.Compare(a.LimitName, b.LimitName) })
	return here
}

// Held returns how many locks in etcd belong to no process, as this one saw last: those of holds
// and of the lock API, and those that are closed after an unknown outcome. since is when the oldest
// of their executions began; the zero time if there is none.
func (s *Store) Held() (n int, since time.Time) { return s.holdings.Count() }

// wentBack is called when etcd was put back to an earlier state under this process, with its
// revisions. What is known here by a revision is worth nothing then, and what has become of the
// rest only etcd can say: so the session ends, and all begins anew with the next one. That what
// runs still has its lock shows when that is adopted. The session's key may have come back with
// locks that were given up long ago; its lease runs out, because no process renews it.
func (s *core) wentBack(before, now int64) {
	s.options.Logger.Error("etcd.went_back", "revision", now, "before", before, "advice", backAdvice)
	s.keeper.Lose(session.ErrWentBack)
	s.view.Forget()
	s.own.Rewind()
}

// backAdvice: nothing here can do it.
const backAdvice = "etcd was restored to an earlier state without --bump-revision: events that ran since run again " +
	"when they are repeated, what was parked " +
	"since is lost, and fencing tokens are given a second time; stop every Hooklock and etcd, and restore it as " +
	"docs/etcd.md says"
