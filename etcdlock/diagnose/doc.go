// Package diagnose checks the etcd that a Store would use, and the clocks of this machine, and
// advises what to do about problems.
//
// Its words: a check is about one thing, and a Finding is its Result with what was found and an
// advice. What Etcd writes lives below a key of its own, <prefix>/v1/doctor/, which no Store reads.
package diagnose
