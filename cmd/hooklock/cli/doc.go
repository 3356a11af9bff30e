// Package cli is what the commands of hooklock have in common: what they are given (Environment), how they end (exit codes), and how they print
// tables, spans of time and JSON so that nobody's names reach the terminal as anything but text.
//
// Words: an exit code is how a command ends (ExitFine and the others), a CodedError one that says which, a UsageError one about how it was called.
// A span is a time as people read it. Plain text has nothing in it that a terminal obeys.
package cli
