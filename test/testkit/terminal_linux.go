package testkit

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal makes a terminal of that size: what a person types into, and what a program is given.
// Both are closed with the test. It skips the test where the system gives none.
func Terminal(tb testing.TB, columns, lines uint16) (person, program *os.File) {
	tb.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		tb.Skipf("no terminal can be had here: %v", err)
	}
	tb.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		tb.Skipf("no terminal can be had here: %v", err)
	}
	tb.Cleanup(func() { _ = program.Close() })
	return person, program
}
