// Package model explores the protocol of package etcdlock: every order of steps, within small bounds, of processes that crash, sessions
// that end early or are given up too soon, answers that get lost while their transaction is applied later or never, waiters that hang up,
// and people who cancel, force, guard and forget. In every state that can be reached it checks the promises of promises.go.
//
//	table.go      the transactions, each with its compares, spelled as in etcdlock/protocol/table.go
//	writes.go     what each does in etcd (store.go)
//	delivery.go   what a delivery does before it has the lock, which in a queue protocol.Next says
//	running.go    what it does then, attached.go what a copy does, world.go what happens to it
//	parked.go     how a delivery is parked and what carries it on, and parked_writes.go what that does in etcd
//	promises.go   what must hold
//	scenarios.go  who is there and how much may go wrong; each is explored to its end
//	mutation.go   what breaks when a compare or a rule is left out
//	batch.go      transactions in one request against both serial orders
//	search.go     breadth first, so that the trace of a broken promise is a shortest one; and random walks
//
// It is not a test of the code: it says that the table is right. That the code has this table is what code_test.go compares. Whoever
// changes a transaction changes both, and sees here what the change breaks.
//
// A search is one goroutine over 33 million states. The race detector would find nothing in it and make it ten times as slow, so the
// package is run without it. docs/model.md says what the model leaves out, scenarios.md has its figures.
package model
