// Package requests stores the requests of executions that may outlive their process: how a request
// is encoded and sealed, where its bytes are, and how bytes without an execution are found.
//
// A Keeper turns a Request into the value that the ledger writes in the transaction that parks it.
// A short request is in that value; a longer one is written to a Store before, and the value refers
// to it. So a transaction that was committed always has its bytes, and one that was not leaves
// bytes behind that a Sweeper deletes an hour later.
//
// An Archive keeps requests of executions that were called for, whether or not they were parked:
// written behind, and for a while.
//
// The package knows neither a route nor an order, and nothing of etcd: parking gives it the bytes,
// and the park worker gives the value back.
package requests
