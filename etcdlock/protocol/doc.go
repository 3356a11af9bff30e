// Package protocol is what the processes of Hooklock and etcd say to each other: which keys there are (layout.go), what is in them (value.go),
// which transactions change them and what each compares (table.go), and what a refused one shows (state.go).
//
// Keys are the keys of one execution, Seen the revisions that a transaction relies on, a Leased a value with the lease that it lives on, and a
// State what stands in the way. Nothing here sends anything: package etcdlock does, and test/model checks the table.
package protocol
