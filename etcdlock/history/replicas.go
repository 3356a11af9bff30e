package history

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	describeEvery = 2 * time.Second // a process looks whether it has changed
	// describeAgain is when it is written although nothing has changed, so that others see how long
	// ago a dead one was there.
	describeAgain = 30 * time.Second
	// replicaRetention is for how long others see a process that has ended.
	replicaRetention = time.Hour
	maxReplicas      = 500 // that are read
)

// Replicas notes what this process says of itself to operators, and reads what all say.
type Replicas struct {
	*writer
	describe func() []byte
	session  func() string

	now     note
	value   idem.ReplicaNote // guarded by mu of writer
	written time.Time

	one sync.Mutex // a look at a time
}

// NewReplicas returns a writer and reader. describe returns the description, which changes only if
// what it says does, and session the name of the session, or "". describe may be nil: this process
// is not described. Run writes.
func NewReplicas(o *Options, describe func() []byte, session func() string) *Replicas {
	r := &Replicas{writer: newWriter(o), describe: describe, session: session}
	r.now.retention = replicaRetention
	key := o.Layout.Replica(o.Writer)
	r.now.says = func() (string, []byte, *protocol.Row) { return key, protocol.EncodeReplica(&r.value), nil }
	return r
}

// Run describes this process, until ctx ends.
func (r *Replicas) Run(ctx context.Context) {
	for r.describe != nil {
		if link.Sleep(ctx, describeEvery) != nil {
			return
		}
		r.describeIfChanged(false)
		r.Write(ctx)
	}
}

// Finish says that this process stops, if it was described, and if etcd takes that at once.
func (r *Replicas) Finish(ctx context.Context) {
	r.mu.Lock()
	described := !r.written.IsZero()
	r.mu.Unlock()
	if described {
		r.describeIfChanged(true)
		r.writer.Finish(ctx)
	}
}

// describeIfChanged has the description written if it has changed, or is old.
func (r *Replicas) describeIfChanged(stops bool) {
	r.one.Lock()
	defer r.one.Unlock()
	says, session, at := r.describe(), r.session(), r.options.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	old := &r.value
	session = cmp.Or(session, old.Session)
	if !stops && bytes.Equal(says, old.Says) && session == old.Session && at.Sub(r.written).Abs() < describeAgain {
		return
	}
	r.value, r.written = idem.ReplicaNote{Session: session, Says: says, At: at.UTC().Truncate(time.Millisecond),
		Stopped: stops}, at
	r.enqueueLocked(&r.now)
}

// Replicas returns what each process says of itself, those that ended in the last hour included,
// the newest note first. This one's is as of now. It returns idem.ErrStoreUnavailable if etcd
// cannot be read.
func (r *Replicas) Replicas(ctx context.Context) (all []idem.ReplicaNote, err error) {
	for kv, err := range r.options.Pool.All(ctx, link.Below(r.options.Layout.All(protocol.KindReplicas), MaxPage)) {
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		n := protocol.DecodeReplica(kv.Value)
		if n == nil || len(all) >= maxReplicas { // of a newer release, or one of a process that starts again and again
			continue
		}
		n.Writer = strings.TrimPrefix(string(kv.Key), r.options.Layout.All(protocol.KindReplicas))
		if n.Writer == r.options.Writer {
			continue
		}
		n.Alive = n.Session != "" && r.options.Sessions.Has(protocol.SessionAlive(n.Session))
		all = append(all, *n)
	}
	if r.describe != nil {
		session := r.session()
		all = append(all, idem.ReplicaNote{
			Writer: r.options.Writer, Session: session, Says: r.describe(), At: r.options.Clock.Now(),
			Alive: session != "",
			Self:  true,
		})
	}
	slices.SortStableFunc(all, func(a, b idem.ReplicaNote) int { return b.At.Compare(a.At) })
	return all, nil
}
