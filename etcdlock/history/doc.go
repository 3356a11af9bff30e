// Package history is the read side of the ledger: it finds and lists executions, locks, slots and parked requests (Reader), and writes what is
// only there to be read: duplicates and arrivals (Duplicates), and audits (Audits). No transaction of the protocol compares these keys.
package history
