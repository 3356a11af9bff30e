// Package proxy takes one delivery to the upstream and its answer back, in stages: it copies the
// head, finds the route, reads the body, verifies the signature, names the event, asks the gate,
// makes one exact attempt upstream, settles, and turns the result into one answer.
//
// handler.go has the stages in their order. The package sees no store: the Gate decides what may
// run.
//
// Words: a stage takes a delivery one step further, or returns its ending; an ending is a decision
// and the answer; the policy of a route turns an ending into another one; a refusal is an answer
// that Hooklock makes itself; a rejection is a delivery refused for its form.
package proxy
