// Package virtual runs whole days of Hooklock in seconds: several processes (store, guard, park
// worker), a real etcd server, a service, senders with their retry schedules, operators and faults,
// all in one bubble of virtual time (testing/synctest). What the service and the senders saw is
// held against the promises of the documentation; nothing here knows how the ledger keeps them.
//
// A seed decides what can be decided: settings, traffic, faults and identifiers. The order of
// goroutines is not among it, so a failing seed is run again several times, and the history of the
// first failure is written out.
package virtual
