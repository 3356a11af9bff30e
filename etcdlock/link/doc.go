// Package link is the way to etcd: one connection for each member, and what each request over it
// needs.
//
// Its words: a Pool has the members of one etcd, the Target, and uses one of them until it fails. A
// request is tried (Pool.Try) with a limit, and repeated after the pauses of a Backoff. An error is
// Definite if the request has not been applied and never will be. A Watch is a range of keys with a
// callback. A Clock measures elapsed time, also over a suspension of the machine. A release is the
// version of etcd that a member runs.
package link
