// Package fault breaks things between any two packages and looks at what is left of the promises:
// processes of Hooklock are killed and frozen at each step of a delivery's life, etcd loses
// members, answers and disks, and all of it goes on for ten minutes under traffic.
//
// The tests need Linux. `go test -short ./test/fault/...` is what CI runs; without -short
// everything runs; -soak 10m runs the long one; -update writes the tables of kill-table.md and
// docs/proof.md.
package fault
