package link

import (
	"errors"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"hooklock/etcdlock/etcdtest"
)

func TestAReadKeepsAllOptionsOfTheClientsOp(t *testing.T) {
	first := Read(clientv3.OpGet("/queue/w/",
		append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...)).GetRequestRange()
	want := &pb.RangeRequest{
		Key: []byte("/queue/w/"), RangeEnd: []byte("/queue/w0"), KeysOnly: true, Limit: 1,
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_ASCEND,
	}
	if !proto.Equal(first, want) {
		t.Errorf("%v is not %v", first, want)
	}
	last := Read(clientv3.OpGet("/locks/", clientv3.WithRange("/locks0"), clientv3.WithRev(7), clientv3.WithLimit(3),
		clientv3.WithCountOnly(),
		clientv3.WithMaxCreateRev(5))).GetRequestRange()
	if string(last.Key) != "/locks/" || string(last.RangeEnd) != "/locks0" || last.Revision != 7 || last.Limit != 3 ||
		!last.CountOnly || last.MaxCreateRevision != 5 {
		t.Errorf("%v", last)
	}
}

func TestARequestIsSplitOnlyWhereThatHelps(t *testing.T) {
	numbers := []int{1, 2, 3, 4, 5, 6, 7}
	var sent [][]int
	takes := func(most int, refusal error) func([]int) error {
		sent = nil
		return func(some []int) error {
			if len(some) > most {
				return refusal
			}
			sent = append(sent, some)
			return nil
		}
	}
	if err := inParts(numbers, takes(2, rpctypes.ErrTooManyOps)); err != nil ||
		!slices.Equal(slices.Concat(sent...), numbers) {
		t.Errorf("sent %v, %v", sent, err)
	}
	if err := inParts(numbers, takes(3, rpctypes.ErrRequestTooLarge)); err != nil ||
		!slices.Equal(slices.Concat(sent...), numbers) {
		t.Errorf("sent %v, %v", sent, err)
	}
	if err := inParts(numbers, takes(7, rpctypes.ErrTooManyOps)); err != nil || len(sent) != 1 {
		t.Errorf("sent %v, %v", sent, err)
	}
	if err := inParts(numbers, takes(0, rpctypes.ErrTooManyOps)); !errors.Is(err, rpctypes.ErrTooManyOps) {
		t.Errorf("what is too much alone: %v", err)
	}
	if err := inParts(numbers, takes(2, rpctypes.ErrNoSpace)); !errors.Is(err, rpctypes.ErrNoSpace) || sent != nil {
		t.Errorf("sent %v, %v", sent, err)
	}
	if err := inParts(nil, takes(7, nil)); err != nil || len(sent) != 1 {
		t.Errorf("nothing is sent as it is: %v, %v", sent, err)
	}
}

// Both come after etcd has gone on, or back, under a scan: to ask again, or another member, does
// not help.
func TestAReadAtARevisionThatEtcdDoesNotHaveEndsAtOnce(t *testing.T) {
	e := etcdtest.Start(t)
	pool, err := OpenPool(&Target{Endpoints: []string{e.Endpoint, e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	for range 3 {
		if _, err := e.Client.Put(etcdtest.Within(t, etcdtest.Patience), "k", "v"); err != nil {
			t.Fatal(err)
		}
	}
	e.Compact(t)
	for revision, want := range map[int64]error{1: rpctypes.ErrCompacted, 1 << 40: rpctypes.ErrFutureRev} {
		if _, _, err := pool.Read(etcdtest.Within(t, etcdtest.Patience),
			clientv3.OpGet("k", clientv3.WithRev(revision))); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if _, at, _ := pool.Current(); at != 0 {
			t.Errorf("%v: it went to another member, and every watch ended", want)
		}
	}
}

func TestAWriteThatEtcdRefusesForItsSizeHoldsNoOtherBack(t *testing.T) {
	e := etcdtest.StartWithRequestBytes(t, 32<<10)
	pool, err := OpenPool(&Target{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	var writes []*pb.RequestOp
	for i, size := range []int{20 << 10, 33 << 10, 20 << 10, 600 << 10, 20 << 10} {
		put := &pb.PutRequest{Key: []byte{'k', byte('0' + i)}, Value: make([]byte, size)}
		writes = append(writes, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
	}
	if err := pool.CommitParts(etcdtest.Within(t, etcdtest.Patience), writes); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Count(etcdtest.Within(t, etcdtest.Patience), "k"); err != nil || n != 3 {
		t.Errorf("%d of 3 were written, %v", n, err)
	}
}
