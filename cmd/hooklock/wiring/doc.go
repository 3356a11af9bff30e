// Package wiring turns a configuration into the objects of the other packages, for the command that runs them and for those that check them.
//
// Words: options are what the constructor of another package wants, rules the routes of a proxy. A template is covered where all that it reads is
// signed by the sender.
package wiring
