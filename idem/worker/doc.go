// Package worker runs parked executions: events that were accepted and whose senders wait for no
// answer (docs/park.md).
//
// A Worker takes queues that are ready, of this process and of those that are gone. idem.Next says
// what each execution does now, and idem.Judge what its tries mean. Slots bound the tries that go
// on at a time.
package worker
