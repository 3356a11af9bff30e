// Package cli has what the commands of hooklock share: their inputs and outputs (Environment),
// their exit codes and errors, and tables, times, JSON and YAML in which text from a server cannot
// control the terminal.
package cli
