// Package claim takes locks: for a delivery that just came, for the head of a queue, and for a
// client of the lock API.
package claim
