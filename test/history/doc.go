// Package history records what concurrent clients of a ledger did and saw, and checks it against
// what a ledger may do.
//
// The model is one workflow with one event: who holds the lock, the last fencing token, and the
// event's record. A client whose operation ended without an answer does not know whether it was
// applied, and it may be applied at any later time: such an operation stays open to the end, and
// the model goes both ways.
//
// The package knows ledgers by their interface alone, so that a ledger's own tests can use it.
package history
