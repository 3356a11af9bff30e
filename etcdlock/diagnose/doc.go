// Package diagnose looks at the etcd that a Store would use, and at the clocks of this machine, and says what to do where something is wrong.
//
// Its words: a check looks at one thing, and a Finding is its Result with what was found and an advice. What Etcd writes lives below a key of
// its own, <prefix>/v1/doctor/, where no Store reads.
package diagnose
