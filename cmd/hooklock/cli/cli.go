package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// Exit codes, as README.md lists them.
const (
	ExitFine     = 0
	ExitFailed   = 1
	ExitUsage    = 2 // bad usage or bad configuration
	ExitNotFound = 3
	ExitRefused  = 4 // somebody else holds the lock, or it has ended

	// ExitServe is serve's ExitUsage: EX_CONFIG of sysexits.h. 2 is how Go ends a process that panics or gets SIGABRT, and a supervisor has to
	// tell that apart: a crash is started again, a bad configuration is not.
	ExitServe = 78
)

// Environment is what a command works with.
type Environment struct {
	Env    []string
	Stdout io.Writer
	Stderr io.Writer // a server's log takes its place
	AtEnd  func()    // what is left to be done when the command has ended; nil: nothing
}

// Output is a program's output that remembers that something could not be written: whoever prints a few words looks no more than whoever prints pages.
type Output struct {
	To  io.Writer
	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *Output) Write(text []byte) (int, error) {
	n, err := o.To.Write(text)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = err
	}
	return n, err
}

// Err is why something is not written; nil: all is.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Close does what is left to be done.
func (e *Environment) Close() {
	if e.AtEnd != nil {
		e.AtEnd()
	}
}

// Lookup is the value of a variable of the environment; "" where it is not set.
func (e *Environment) Lookup(name string) string {
	value := ""
	for _, pair := range e.Env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// UsageError is a mistake on the command line or in the configuration.
type UsageError struct{ error }

// Misuse makes err a mistake of usage.
func Misuse(err error) error { return UsageError{err} }

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.error }

// CodedError ends the program with an exit code of its own.
type CodedError struct {
	error
	Code int
}

// WithCode makes err end the program with that exit code.
func WithCode(err error, code int) error { return CodedError{err, code} }

// Unwrap returns the error.
func (e CodedError) Unwrap() error { return e.error }

// Suggestion is the end of an error about an unknown word: the command that was probably meant, or nothing.
func Suggestion(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2 // letters that may be wrong
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// NoArgs refuses arguments as a mistake of usage.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Misuse(fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0]))
	}
	return nil
}

// Quoted is text as one word of a POSIX shell.
func Quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
