// Package client speaks to the admin API of Hooklock: it sees and steers executions and locks, speaks about an execution as its upstream
// does (guard, heartbeat, complete), and uses Hooklock as a lock server.
//
// It needs nothing but the standard library. A Client is safe for concurrent use. Every call follows the life of its context and is sent
// once: nothing is tried again, because whoever calls knows best what a second try means. What the server refuses is a *Problem; any other
// error means that no answer came, and that a change may or may not have happened.
//
// The types are the JSON of the API: the server answers with them, too. Times are UTC; what the server leaves out is the zero value.
//
// Words: an Execution and a Lock are what the API shows of them, a page is a part of a list, with the cursor of the next one. A Callback speaks for
// one execution with its callback key. A Problem is a refusal of the server, RFC 9457.
package client
