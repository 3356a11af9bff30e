package protocol

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Operations are built here in the form in which they travel. clientv3's Op and Cmp copy each
// compare twice and each value twice before they have it. Each of these is one allocation, and one
// for each key in it.

// Op is one operation: a transaction, a write or a read.
type Op = *pb.RequestOp

// Cmp is one compare.
type Cmp = *pb.Compare

func newTxn(compares Compares, writes, refused Writes) Op {
	o := &struct {
		op  pb.RequestOp
		is  pb.RequestOp_RequestTxn
		txn pb.TxnRequest
	}{}
	o.txn.Compare, o.txn.Success, o.txn.Failure = compares, writes, refused
	o.is.RequestTxn, o.op.Request = &o.txn, &o.is
	return &o.op
}

// Put writes v, on its lease if it has one. The bytes of v are not copied.
func Put(key string, v Leased) Op {
	o := &struct {
		op  pb.RequestOp
		is  pb.RequestOp_RequestPut
		put pb.PutRequest
	}{}
	o.put.Key, o.put.Value, o.put.Lease = []byte(key), v.Value, int64(v.Lease)
	o.is.RequestPut, o.op.Request = &o.put, &o.is
	return &o.op
}

func deleteKey(key string) Op {
	op, _ := newDelete(key)
	return op
}

// deleteReturning deletes key and returns its last value.
func deleteReturning(key string) Op {
	op, request := newDelete(key)
	request.PrevKv = true
	return op
}

func newDelete(key string) (Op, *pb.DeleteRangeRequest) {
	o := &struct {
		op  pb.RequestOp
		is  pb.RequestOp_RequestDeleteRange
		del pb.DeleteRangeRequest
	}{}
	o.del.Key = []byte(key)
	o.is.RequestDeleteRange, o.op.Request = &o.del, &o.is
	return &o.op, &o.del
}

func getValue(key string) Op {
	op, _ := newRange(key)
	return op
}

// getKey reads whether key exists, and its revisions.
func getKey(key string) Op {
	op, request := newRange(key)
	request.KeysOnly = true
	return op
}

// getFirst reads the key below prefix that was created first.
func getFirst(prefix string) Op { return getOldest(prefix, 1) }

// getCandidates reads the oldest entries of a queue. etcd looks at each entry that exists, and at
// each that existed since the last compaction; so one read fetches some for later, too.
func getCandidates(prefix string) Op { return getOldest(prefix, MaxCandidates) }

// MaxCandidates is how many queue entries are read at a time. The answer has up to 2 KiB for each
// of them.
const MaxCandidates = 128

func getOldest(prefix string, n int64) Op {
	op, request := newRange(prefix)
	request.RangeEnd, request.Limit = []byte(clientv3.GetPrefixRangeEnd(prefix)), n
	request.SortTarget, request.SortOrder = pb.RangeRequest_CREATE, pb.RangeRequest_ASCEND
	return op
}

func newRange(key string) (Op, *pb.RangeRequest) {
	o := &struct {
		op  pb.RequestOp
		is  pb.RequestOp_RequestRange
		get pb.RangeRequest
	}{}
	o.get.Key = []byte(key)
	o.is.RequestRange, o.op.Request = &o.get, &o.is
	return &o.op, &o.get
}

// FromAnyMember lets reads be answered by the member that is asked, from its own state, without
// asking the others.
func FromAnyMember(reads []Op) []Op {
	for _, op := range reads {
		op.GetRequestRange().Serializable = true
	}
	return reads
}
