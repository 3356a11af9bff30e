// Package arch holds the shape of the project by machine: which package may know which, how large a
// file and a function may grow, and a few habits that nobody should have to watch for in a review.
//
// Each rule carries its reason, and the reason is what a broken rule prints. Whoever wants to break
// one changes it here, in the open.
package arch
