// Package remote is the commands that ask a running Hooklock: locks, executions, report, and what they share (a Desk).
//
// Words: a Remote is where the API is and who asks, a Desk an open way to it. A listing is a list that is printed while it comes. A doubt is an error
// after which nobody knows whether a change was made.
package remote
