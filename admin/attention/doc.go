// Package attention makes the one list of what needs a person now, for the API, the page and the
// command line. It is pure: its caller reads the ledger and the state of the process.
//
// Words: an Item is one thing that is wrong, or several equal ones. A Note is what a replica says
// of itself, which the others read from the ledger.
package attention
