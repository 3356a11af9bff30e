package link

import (
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// moment is what was known of etcd when a request was sent: the largest revision of an answer, and
// how often etcd had gone back before.
type moment struct {
	revision int64
	backs    int
}

func (p *Pool) currentMoment() moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// compareRevision compares an answer with what was known before its request was sent. If its
// revision is smaller, etcd was set back to an earlier state: restored without larger revisions
// (docs/etcd.md). A watch from a revision that is yet to come again would be silent until then, so
// all of them end.
func (p *Pool) compareRevision(before moment, revision int64) {
	p.mu.Lock()
	if p.at.backs != before.backs { // another answer has reported it
		p.mu.Unlock()
		return
	}
	if revision >= before.revision {
		p.at.revision = max(p.at.revision, revision)
		p.ages.noteRevision(p.at.revision)
		p.mu.Unlock()
		return
	}
	p.at = moment{revision, before.backs + 1}
	p.ages.forgetAll()
	p.mu.Unlock()
	if p.onBack != nil {
		p.onBack(before.revision, revision)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wakeOnMoveLocked()
}

// ofAll reports whether the answer has the revision of the cluster, and not just that of the member
// which was asked.
func ofAll(ops []*pb.RequestOp) bool {
	return len(ops) > 0 && !ops[0].GetRequestRange().GetSerializable() // all of them are, or none
}

// Age returns how long ago etcd had revision at the latest, by this process's own clocks: 0 if it
// does not know. It is less than the true age, never more: nothing that another process wrote is
// compared with a clock of this one.
func (p *Pool) Age(revision int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ages.ageOf(revision)
}

// noteRevision tells Age of a revision that a watch reported.
func (p *Pool) noteRevision(revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ages.noteRevision(revision)
}
