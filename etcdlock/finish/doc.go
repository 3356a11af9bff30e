// Package finish makes what an execution leaves behind when its process is done with it: its
// record, the cooling lock after an unknown outcome, the hold if its upstream goes on, and the dead
// letter of a parked one, each with the leases that they need.
package finish
