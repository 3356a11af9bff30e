// Package asking asks the service what became of events of unknown outcome, on routes with
// on_unknown: ask. Any process asks about the events of all: the ledger has the open questions, and
// lets one process ask at a time. A question is one GET; what its answer says becomes the outcome
// of the event, and the lock that stayed closed for it is free again.
package asking
