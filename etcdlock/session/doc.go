// Package session keeps this process's session in etcd: a lease that proves the process alive, with
// an epoch that a fence moves on (Keeper, Session). It also follows which other sessions are alive
// (Set).
package session
