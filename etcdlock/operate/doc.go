// Package operate is what people ask of the ledger, at any process: to find an execution or a lock (Finder), to cancel, skip, run, forget and release
// (Operator), to pause (Pauser), and to mark what was looked at (Marker). Each change is one transaction that compares what it changes, so it is
// repeated until its answer is definite.
package operate
