// Package operate is what people ask of the ledger, at any process: to find an execution or a lock
// (Finder), and to cancel, skip, run, forget, release, pause and mark what was looked at
// (Operator). Each change is one transaction that compares what it changes, so it is repeated until
// its answer is definite.
package operate
