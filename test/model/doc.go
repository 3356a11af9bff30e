// Package model explores the protocol of package etcdlock: every order of steps, within small
// bounds, of processes that crash, sessions that end early or are given up too soon, answers that
// get lost while their transaction is applied later or never, waiters that hang up, and people who
// cancel, force, guard and forget. In every state that can be reached it checks the promises of
// promises.go.
//
//	transactions.go   the transactions, each with what its sender knows
//	ops.go        what the protocol makes of that, with the keys of keys.go; etcd.go runs it in the store of store.go
//	effects.go    what each means for the promises
//	delivery.go   what a delivery does before it has the lock, which in a queue protocol.WhileQueued says
//	running.go    what it does then, attached.go what a copy does, world.go what happens to it
//	parked_deliveries.go how a delivery is parked and what carries it on, parked_tries.go its tries and kept requests
//	promises.go   what must hold
//	scenarios.go  who is there and how much may go wrong; each is explored to its end
//	mutation.go   what breaks when a compare or a rule is left out
//	batch.go      transactions in one request against both serial orders
//	search.go     breadth first, so that the trace of a broken promise is a shortest one; and random walks
//
// The transactions are those of etcdlock/protocol itself; what processes do with them is written
// down here a second time. Whoever changes a transaction sees here what the change breaks.
//
// A search is one goroutine over 33 million states. The race detector would find nothing in it and
// make it ten times as slow, so the package is run without it. README.md says what the model
// leaves out, scenarios.txt has its figures.
package model
