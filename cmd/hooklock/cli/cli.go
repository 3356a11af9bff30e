package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// Exit codes, as README.md lists them.
const (
	ExitFine     = 0
	ExitFailed   = 1
	ExitUsage    = 2 // bad usage or bad configuration
	ExitNotFound = 3
	ExitRefused  = 4 // another execution holds the lock, or it has ended

	// ExitServe replaces ExitUsage for serve: EX_CONFIG of sysexits.h. Go ends a process that
	// panics or gets SIGABRT with 2, and a supervisor restarts a crash, but not a bad
	// configuration.
	ExitServe = 78
)

// Environment holds the inputs and outputs of a command.
type Environment struct {
	Env    []string
	Stdin  *os.File // nil = questions cannot be answered
	Stdout io.Writer
	Stderr io.Writer // a server's log replaces it
	AtEnd  func()    // called when the command has ended; may be nil
}

// Output is a writer that remembers the last error, so that code that prints need not check each
// write. It is safe for concurrent use.
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

// Err returns the last error of a write, or nil.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Close calls AtEnd.
func (e *Environment) Close() {
	if e.AtEnd != nil {
		e.AtEnd()
	}
}

// Lookup returns the value of a variable of the environment, or "" if it is not set.
func (e *Environment) Lookup(name string) string {
	value := ""
	for _, pair := range e.Env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// CodedError is an error with the exit code of the program.
type CodedError struct {
	error
	Code int
}

// WithCode wraps err as a CodedError.
func WithCode(err error, code int) error { return CodedError{err, code} }

// Misuse wraps err as a mistake on the command line or in the configuration.
func Misuse(err error) error { return WithCode(err, ExitUsage) }

// Unwrap returns the wrapped error.
func (e CodedError) Unwrap() error { return e.error }

// Suggestion returns the end of an error about an unknown command: the command that was probably
// meant, or "".
func Suggestion(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2 // letters that may differ
	near := cmd.SuggestionsFor(word)   // before Commands sorts them
	for _, meant := range cmd.Commands() {
		if slices.Contains(meant.SuggestFor, word) {
			return "; did you mean " + meant.Name() + "?"
		}
	}
	if len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Misuse(fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0]))
	}
	return nil
}

// Pause waits for d, and reports whether ctx is not done by then.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// BuildVersion returns the version of this binary: the release, or what the Go toolchain recorded.
func BuildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// version is set by the linker in a release.
var version string
