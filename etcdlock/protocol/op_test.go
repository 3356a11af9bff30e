package protocol

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"hooklock/idem"
)

func TestAReadInTheWordsOfTheClientKeepsAllThatItAsksFor(t *testing.T) {
	first := Read(clientv3.OpGet("/queue/w/", append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())...))
	if !proto.Equal(first, getFirst("/queue/w/")) {
		t.Errorf("%v is not %v", first, getFirst("/queue/w/"))
	}
	last := Read(clientv3.OpGet("/locks/", clientv3.WithRange("/locks0"), clientv3.WithRev(7), clientv3.WithLimit(3), clientv3.WithCountOnly(),
		clientv3.WithMaxCreateRev(5))).GetRequestRange()
	if string(last.Key) != "/locks/" || string(last.RangeEnd) != "/locks0" || last.Revision != 7 || last.Limit != 3 || !last.CountOnly || last.MaxCreateRevision != 5 {
		t.Errorf("%v", last)
	}
}

var sunk Op

// BenchmarkTransactions builds what a new event sends.
func BenchmarkTransactions(b *testing.B) {
	k := NewLayout("/hooklock").Keys(&idem.Lock{Entry: idem.Entry{Execution: "exec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Scope: idem.Scope{Workflow: "orders/acme", Key: "0123456789abcdef0123456789abcdef"}}})
	k.S = "/hooklock/v1/sessions/aaaaaaaaaaaaa"
	v := Leased{Value: make([]byte, 600), Lease: 5}
	b.ReportAllocs()
	for b.Loop() {
		sunk = Claim(k, Seen{Epoch: 5}, v)
		sunk = Settle(k, Seen{Created: 6, L: 6}, v, nil, nil)
	}
}
