// Package wiring turns a configuration into the objects of the other packages, for the command that
// runs them and for those that check them.
//
// Options are the arguments of the constructors of other packages, rules the routes of a proxy. A
// template is covered if the sender signs all that it reads.
package wiring
