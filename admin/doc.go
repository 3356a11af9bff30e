// Package admin serves the operators' side of a running Hooklock: the HTTP API for locks and
// executions, health and metrics. Nothing of it is on a delivery's path.
//
// endpoints.go is the table of endpoints, api.go the way of one request through it: host, origin,
// capacity, caller, body, ledger, audit line.
//
// Words: a call is one request under way, to an endpoint, by a caller: a Token, or a callback key.
// A caller is limited if it may see only some workflows. A problem is a refusal, and its kind the
// row of problem_kinds.go with its status. The Ledger is what the API reads and changes.
package admin
