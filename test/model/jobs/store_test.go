package jobs

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Bounds of every scenario. A session that has ended is never used again; the last one is for
// goesOn.
const (
	events    = 2
	processes = 2
	sessions  = 4
	maxLost   = 2
)

// The keys of the store, each by its index.
const (
	open     = iota // the job while it runs
	ended           // the job once it is done or stopped
	run0            // what it follows, for each event
	lock0    = run0 + events
	index0   = lock0 + events
	session0 = index0 + events
	keys     = session0 + sessions
)

// revision is one of the store; 0 = absent, or not known.
type revision uint8

// value is what a key has.
type value [8]byte

type key struct {
	created, modified revision
	value             value
}

// job is what the value of a job says.
type job struct {
	session uint8 // of its owner; 0 = it has none
	until   revision
	next    uint8 // the first event that is not done
	matched uint8
	acted   uint8
	refused uint8
	ended   uint8
	stopped bool
}

func (j job) value() value {
	v := value{j.session, byte(j.until), j.next, j.matched, j.acted, j.refused, j.ended}
	if j.stopped {
		v[7] = 1
	}
	return v
}

func jobOf(v *value) job {
	return job{v[0], revision(v[1]), v[2], v[3], v[4], v[5], v[6], v[7] != 0}
}

// The phases of an event, the first byte of its lock.
const (
	blocked  byte = iota + 1 // it waits for a person, or for this job
	released                 // somebody has let it run
	over
)

// kind is a transaction.
type kind uint8

const (
	begin kind = iota + 1
	take
	put
	step    // a transaction of the job and of the event
	person  // the same of a person: without the job
	stop    // as a person asks, or because its token is revoked
	resume  // what was stopped
	finish  // what is done
	discard // one of too many that have ended
	kinds
)

func (k kind) String() string {
	return [...]string{"", "begin", "take", "put", "step", "run now", "stop", "resume", "finish", "discard"}[k]
}

// txn is a transaction with what its sender knows.
type txn struct {
	kind   kind
	prev   revision // of the job
	job    job      // as it is to be
	event  uint8
	follow bool
	lock   revision // of the event
	gone   uint8    // the session of an owner that is to be gone; 0 = none is looked at
	count  [events]bool
}

var (
	layout = protocol.NewLayout("m")
	all    = spell()
	refs   = indexes()
)

func spell() (names [events]protocol.Keys) {
	for e := range names {
		names[e] = layout.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.ExecutionID(fmt.Sprint("execution", e)),
			Scope:     idem.Scope{Workflow: fmt.Sprint("w", e), Key: idem.Key(fmt.Sprint("event", e))},
		}})
	}
	return names
}

// indexes returns the index of each key.
func indexes() map[string]int {
	at := map[string]int{layout.Job("job", idem.JobRunning): open, layout.Job("job", idem.JobDone): ended}
	for e := range uint8(events) {
		at[runKey(e)], at[all[e].Lock], at[all[e].Index] = run0+int(e), lock0+int(e), index0+int(e)
	}
	for i := range uint8(sessions) {
		at[sessionKey(i+1)] = session0 + int(i)
	}
	return at
}

func runKey(event uint8) string { return layout.JobRuns("job") + fmt.Sprint("execution", event) }

func sessionKey(i uint8) string {
	return layout.Alive(protocol.SessionAlive(fmt.Sprint("session", i)))
}

// from is the key of the job that t compares.
func (t *txn) from() int {
	if t.kind == resume || t.kind == discard {
		return ended
	}
	return open
}

// op is t as etcdlock/protocol makes it.
func (t *txn) op() protocol.Op {
	from, to := layout.Job("job", idem.JobRunning), layout.Job("job", idem.JobDone)
	v, prev, runs := leased(t.job.value()), int64(t.prev), layout.JobRuns("job")
	switch t.kind {
	case begin:
		return protocol.PutJob(from, 0, v, "", protocol.Leased{}, nil)
	case take:
		gone := ""
		if t.gone != 0 {
			gone = sessionKey(t.gone)
		}
		return protocol.TakeJob(from, prev, gone, v)
	case put:
		run, counted := "", []string{}
		if t.follow {
			run = runKey(t.event)
		}
		for e, is := range t.count {
			if is {
				counted = append(counted, runKey(uint8(e)))
			}
		}
		return protocol.PutJob(from, prev, v, run, leased(value{}), counted)
	case step:
		return protocol.Stepped(t.runNow(), from, prev, v, runKey(t.event), leased(value{}))
	case person:
		return t.runNow()
	case stop:
		return protocol.MoveJob(from, prev, to, v, "")
	case resume:
		return protocol.MoveJob(to, prev, from, v, "")
	case finish:
		return protocol.MoveJob(from, prev, to, v, runs)
	case discard:
		return protocol.DropJob(to, prev, runs)
	}
	panic("no transaction of the protocol for " + t.kind.String())
}

func (t *txn) runNow() protocol.Op {
	return protocol.RunNow(all[t.event], protocol.Revisions{Lock: int64(t.lock)}, leased(value{released}),
		leased(value{}), leased(value{}))
}

func leased(v value) protocol.Leased { return protocol.Leased{Value: v[:]} }

// apply runs t; false: it is refused.
func (m *model) apply(s *state, t *txn) bool {
	request := t.op().GetRequestTxn()
	for _, is := range request.Compare {
		name := nameOf(is)
		m.compares[t.kind][name] = true
		if !slices.Contains(m.drops, t.kind.String()+" "+name) && !s.holds(is) {
			return false
		}
	}
	m.checkBefore(s, t)
	s.clock++
	for _, op := range request.Success {
		switch w := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			if at, ok := refs[string(w.RequestPut.Key)]; ok { // else no process of this model reads it
				s.put(at, value(w.RequestPut.Value))
			}
		case *pb.RequestOp_RequestDeleteRange:
			s.delete(string(w.RequestDeleteRange.Key), string(w.RequestDeleteRange.RangeEnd))
		}
	}
	m.checkAfter(s, t)
	return true
}

func (s *state) put(at int, v value) {
	k := &s.keys[at]
	if k.created == 0 {
		k.created = s.clock
	}
	k.modified, k.value = s.clock, v
}

func (s *state) delete(from, to string) {
	for name, at := range refs {
		if name == from || to != "" && from <= name && name < to {
			s.keys[at] = key{}
		}
	}
}

func (s *state) holds(is *pb.Compare) bool {
	k := &s.keys[refs[string(is.Key)]]
	if is.Target == pb.Compare_MOD {
		return int64(k.modified) == is.GetModRevision()
	}
	return int64(k.created) == is.GetCreateRevision()
}

func nameOf(is *pb.Compare) string {
	what := "job"
	switch at := refs[string(is.Key)]; {
	case at >= session0:
		what = "session"
	case at >= lock0:
		what = "lock"
	}
	if is.Target == pb.Compare_MOD {
		return what + ".mod"
	}
	return what + ".absent"
}

// runs returns how many executions the job follows.
func (s *state) runs() (n int) {
	for e := range events {
		if s.keys[run0+e].created != 0 {
			n++
		}
	}
	return n
}

func (s *state) isAlive(session uint8) bool {
	return session != 0 && s.keys[session0+int(session)-1].created != 0
}

func (t *txn) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s prev=%d event=%d lock=%d %+v", t.kind, t.prev, t.event, t.lock, t.job))
}
