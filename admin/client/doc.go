// Package client calls the admin API of Hooklock: it reads and changes executions and locks, acts
// on an execution as its upstream does (guard, heartbeat, complete), and uses Hooklock as a lock
// server.
//
// It needs nothing but the standard library. A Client is safe for concurrent use. Every call ends
// with its context and is sent once: it is not repeated, because only the caller knows what a
// second attempt means. If the server refuses, the error is a *Problem; any other error means that
// no answer came, and that a change may or may not have happened.
//
// The types are the JSON of the API: the server uses them, too. Times are UTC; a field that the
// server leaves out is the zero value.
//
// Words: an Execution and a Lock are what the API shows of them, a page is a part of a list, with
// the cursor of the next one. A Callback is the right to act on one execution, by its callback key.
// A Problem is a refusal of the server, RFC 9457.
package client
