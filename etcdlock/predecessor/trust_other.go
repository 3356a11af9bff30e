//go:build !linux

package predecessor

import (
	"errors"
	"runtime"
)

// fileSystemOf is not needed without a boot ID.
func fileSystemOf(string) (name string, local bool, err error) { return "", false, errNoBoot }

// mountOf is not needed without a boot ID.
func mountOf(string) (kind string, foreign bool) { return "", false }

// bootID returns an error: nothing that is known here tells a copy on another machine from the
// file.
func bootID() (string, error) { return "", errNoBoot }

var errNoBoot = errors.New("a boot of this machine cannot be told from another one on " + runtime.GOOS)
