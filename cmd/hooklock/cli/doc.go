// Package cli is what the commands of hooklock have in common: what they are given (Environment), how they end (exit codes), and how they print
// tables, spans of time and JSON so that nobody's names reach the terminal as anything but text.
package cli
