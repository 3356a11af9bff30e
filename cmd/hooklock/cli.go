package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes, as README.md lists them.
const (
	exitFine     = 0
	exitFailed   = 1
	exitUsage    = 2 // bad usage or bad configuration
	exitNotFound = 3
	exitRefused  = 4 // somebody else holds the lock, or it has ended
)

// environment is what a command works with.
type environment struct {
	env    []string
	stdout io.Writer
	stderr io.Writer // a server's log takes its place
	atEnd  func()    // what is left to be done when the command has ended; nil: nothing
}

// close does what is left to be done.
func (e *environment) close() {
	if e.atEnd != nil {
		e.atEnd()
	}
}

// lookup is the value of a variable of the environment; "" where it is not set.
func (e *environment) lookup(name string) string {
	value := ""
	for _, pair := range e.env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// usageError is a mistake on the command line or in the configuration.
type usageError struct{ error }

// misuse makes err a mistake of usage.
func misuse(err error) error { return usageError{err} }

// Unwrap returns the mistake.
func (e usageError) Unwrap() error { return e.error }

// codedError ends the program with an exit code of its own.
type codedError struct {
	error
	code int
}

// withCode makes err end the program with that exit code.
func withCode(err error, code int) error { return codedError{err, code} }

// Unwrap returns the error.
func (e codedError) Unwrap() error { return e.error }

func suggestion(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2 // letters that may be wrong
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// noArgs refuses arguments as a mistake of usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse(fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0]))
	}
	return nil
}
