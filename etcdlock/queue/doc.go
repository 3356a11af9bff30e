// Package queue knows the queues that executions of this process wait in: which entry is the head, and which are behind it, from what was read and what the
// watch reports. It takes no lock.
package queue
