package link

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

func TestAReadInTheWordsOfTheClientKeepsAllThatItAsksFor(t *testing.T) {
	first := Read(clientv3.OpGet("/queue/w/", append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...)).GetRequestRange()
	want := &pb.RangeRequest{
		Key: []byte("/queue/w/"), RangeEnd: []byte("/queue/w0"), KeysOnly: true, Limit: 1,
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_ASCEND,
	}
	if !proto.Equal(first, want) {
		t.Errorf("%v is not %v", first, want)
	}
	last := Read(clientv3.OpGet("/locks/", clientv3.WithRange("/locks0"), clientv3.WithRev(7), clientv3.WithLimit(3), clientv3.WithCountOnly(),
		clientv3.WithMaxCreateRev(5))).GetRequestRange()
	if string(last.Key) != "/locks/" || string(last.RangeEnd) != "/locks0" || last.Revision != 7 || last.Limit != 3 || !last.CountOnly || last.MaxCreateRevision != 5 {
		t.Errorf("%v", last)
	}
}
