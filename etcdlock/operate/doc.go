// Package operate is what people ask of the ledger, at any process: to find an execution or a lock (Finder), to cancel, skip, run, forget and release
// (Operator), and to pause (Pauser). Each change is one transaction that compares what it changes, so it is repeated until its answer is definite.
package operate
