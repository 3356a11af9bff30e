// Package admin serves what people and machines ask about a running Hooklock: the HTTP API for locks and executions, health and metrics.
// Nothing of it is on a delivery's path.
//
// endpoint.go is the table of what there is, api.go the way of one request through it: host, site, place, who, body, ledger, audit line.
package admin
