// Package proxy takes a delivery to the service and its answer back. A delivery goes through
// stages, in the order in which handler.go calls them: they copy the head, find the route, read the
// body, verify the signature, name the event, ask the Gate, make one attempt at the service, record
// its end, and write one answer.
//
// A stage returns nil, or the ending of the delivery: a decision and its answer. The policy of the
// route may turn an ending into another one. A refusal is an answer that Hooklock makes itself; a
// Rejection refuses a delivery for its form.
//
// The package knows no store: the Gate decides what may run.
package proxy
