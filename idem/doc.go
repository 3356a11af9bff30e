// Package idem is the vocabulary of Hooklock and every decision it makes: keys, fingerprints, executions and their
// statuses, what a delivery may do given what the ledger remembers (Decide), and the Guard that admits, waits and
// settles.
//
// It sees no HTTP server, no etcd, and no clock that it was not given. What it needs of the store it says in the
// Ledger interface; the one implementation is package etcdlock.
package idem
