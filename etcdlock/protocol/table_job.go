package protocol

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The transactions of jobs. A job is in one key at a time, that of the open jobs or that of the
// ended ones, and each transaction compares its revision. No delivery compares a key of a job; so
// what these add to a transaction of table.go can only refuse it.

// Stepped is a transaction that is applied only while the job at key is at prev, and then writes
// the job and the run that it follows, too: so a step is made once, and is counted if it was made.
// run "" = it follows none. op is a result of a function of the table, and is changed: what a
// refusal reads of the job is the last that it reads.
func Stepped(op Op, key string, prev int64, job Leased, run string, v Leased) Op {
	t := op.GetRequestTxn()
	t.Compare = append(t.Compare, modifiedAt(key, prev))
	t.Success = append(t.Success, Put(key, job))
	if run != "" {
		t.Success = append(t.Success, Put(run, v))
	}
	t.Failure = append(t.Failure, getKey(key))
	return op
}

// SteppedAside reports whether a refusal of a Stepped transaction says that the job has changed.
func SteppedAside(reads []*pb.ResponseOp, prev int64) bool {
	kv := First(reads[len(reads)-1])
	return kv.GetModRevision() != prev
}

// PutJob writes a job as its owner has it now, with a run that it follows from now on, and without
// those that have ended.
func PutJob(key string, prev int64, job Leased, run string, v Leased, ended []string) Op {
	writes := Writes{Put(key, job)}
	if run != "" {
		writes = append(writes, Put(run, v))
	}
	for _, one := range ended {
		writes = append(writes, deleteKey(one))
	}
	return newTxn(Compares{modifiedAt(key, prev)}, writes, nil)
}

// TakeJob takes a job over from an owner whose session is gone; session "" = it has no owner, or
// the same process has it.
func TakeJob(key string, prev int64, session string, job Leased) Op {
	compares := Compares{modifiedAt(key, prev)}
	if session != "" {
		compares = append(compares, Absent(session))
	}
	return newTxn(compares, Writes{Put(key, job)}, nil)
}

// MoveJob moves a job from one of its keys to the other: it ends, is stopped, or goes on. What it
// follows is forgotten if runs is the prefix of that; "" = it stays. It does not compare the other
// key: a job is in one of them.
func MoveJob(from string, prev int64, to string, job Leased, runs string) Op {
	writes := Writes{deleteKey(from), Put(to, job)}
	if runs != "" {
		writes = append(writes, deleteBelow(runs))
	}
	return newTxn(Compares{modifiedAt(from, prev)}, writes, nil)
}

// DropJob deletes a job that has ended, and what is left of what it followed.
func DropJob(key string, prev int64, runs string) Op {
	return newTxn(Compares{modifiedAt(key, prev)}, Writes{deleteKey(key), deleteBelow(runs)}, nil)
}

func deleteBelow(prefix string) Op {
	op, request := newDelete(prefix)
	request.RangeEnd = []byte(clientv3.GetPrefixRangeEnd(prefix))
	return op
}
