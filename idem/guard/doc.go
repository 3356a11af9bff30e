// Package guard decides for each delivery of this process whether it runs now, waits, is parked or
// is refused, and ends the executions of those that ran.
//
// Guard.Admit asks what this process remembers (Cache, the executions that run here, the quota of
// the route), then the idem.Ledger. The decision itself is idem.Decide. An Admission has either an
// Execution or the verdict for the sender. Execution.End takes what the call of the upstream
// showed, and returns an Ending. Once its event is accepted, package idem/worker runs it, as a
// ParkedExecution.
package guard
