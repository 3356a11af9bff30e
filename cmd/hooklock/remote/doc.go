// Package remote is the commands that ask a running Hooklock: locks, executions, report, and what they share (a Desk).
package remote
