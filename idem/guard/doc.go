// Package guard decides for each delivery of this process whether it runs now, waits, is parked or is refused, and ends the executions of those that
// ran.
//
// Guard.Admit asks what this process remembers (Cache, the executions that run here, the quota of the route), then the idem.Ledger. The decision itself
// is idem.Decide. An Admission has either an Execution or the verdict for the sender. An Execution ends with Complete, Release, Hold or Abandon, and
// each returns an Ending. Once it is parked, the park worker judges its tries: package idem/worker, which runs a ParkedExecution.
package guard
