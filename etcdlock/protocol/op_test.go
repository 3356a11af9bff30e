package protocol

import (
	"testing"

	"hooklock/idem"
)

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
