// Package admin serves what people and machines ask about a running Hooklock: the HTTP API for locks and executions, health and metrics.
// Nothing of it is on a delivery's path.
//
// endpoint.go is the table of what there is, api.go the way of one request through it: host, site, place, who, body, ledger, audit line.
//
// Words: a call is one request on its way, to an endpoint, by a caller: a Token, or a callback key. A caller is limited where it sees some workflows
// alone. A problem is an answer that refuses, and its kind the row of problem.go with its status. The Ledger is what the API asks and changes.
package admin
