// Package commit sends the transactions of deliveries to etcd: many in one request (Sender), on
// shared leases (Leases), finished even if their caller has stopped waiting (Tasks). It knows which
// keys a transaction reads and writes, but not what it means.
package commit
