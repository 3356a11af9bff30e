// Package history is the read side of the ledger: it finds and lists executions, locks, slots and
// parked requests (Reader), and writes what is only there to be read: duplicates and arrivals
// (Duplicates), audits (Audits) and counts (Counts). No transaction of the protocol compares these
// keys.
//
// A list of keys in their order is a page (page.go). A list of executions takes the values of
// several sources, the newest first (executions.go): live executions, and those of a known event,
// as etcd sorts them, and what has ended from the leases that it is on (past.go), of which a search
// reads the indexes first (wanted.go). One execution is the State around it, read at one revision
// (execution_state.go), once its scope is found (find.go). What this process has to tell is a note,
// which one writer writes in the background (writer.go).
package history
