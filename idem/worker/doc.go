// Package worker runs parked executions: events that were accepted and whose senders wait for no answer (docs/park.md).
//
// A Worker takes queues that are ready, of this process and of those that are gone. Each execution is tried, and decide says what follows: its end,
// another try, a dead letter, or a queue that waits for a decision. Slots bound the tries that go on at a time.
package worker
