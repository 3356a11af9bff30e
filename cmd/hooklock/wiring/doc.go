// Package wiring turns a configuration into the objects of the other packages, for the command that runs them and for those that check them.
package wiring
