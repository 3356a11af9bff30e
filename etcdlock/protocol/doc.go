// Package protocol is what Hooklock stores in etcd and how it changes it: which keys there are
// (layout.go), what is in them (value.go and its neighbours), which transactions change them and
// what each compares (table.go, table_parked.go), and what a refused one has read (state.go).
//
// Keys are the keys of one execution, Revisions those that a transaction relies on, a Leased a
// value with its lease, and a State what stands in the way. Nothing here sends anything:
// etcdlock/commit does, and test/model checks the table.
package protocol
