// Package park knows what is parked, over all processes: it follows the index of parked executions
// and says which queues are ready (Index). It also drops the requests of dead letters whose records
// are gone.
package park
