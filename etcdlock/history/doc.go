// Package history is the read side of the ledger: it finds and lists executions, locks, slots and parked requests (Reader), and writes down what is only
// there to be read: duplicates and arrivals (Duplicates), and what people asked for (Audits). No transaction of the protocol compares these keys.
package history
