// Package reap ends the executions of dead owners and of expired holds: when another execution
// meets such a lock (Reaper), and of locks that no execution waits for (Sweeper). It also counts
// the holds that exist (Holdings).
package reap
