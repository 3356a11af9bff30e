// Package slots gives out the slots of limits: it knows which are free and which execution is next,
// over all processes, and chooses those that a transaction is to take.
package slots
