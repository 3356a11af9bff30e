// Package memory finds how much memory this process may take, and how much of it bodies may; and it
// gives memory back after a peak.
//
// Words: a Limit is the memory of this process and where that is set; a Keeper watches the
// wire.Budget of bodies, and gives memory back after a peak. Garbage is memory that is not in use
// any more and not yet collected.
package memory

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Where a Limit comes from.
const (
	FromRuntime = "GOMEMLIMIT" // the environment says so
	FromCgroup  = "cgroup"     // of the container, or of the unit of systemd
	FromMachine = "machine"    // nothing else bounds this process
)

// unknownMachine is the assumed memory of a machine that does not report it.
const unknownMachine = 2 << 30

// Limit is how much memory a process may take.
type Limit struct {
	Bytes int64
	From  string
}

// Bodies returns the share of bodies and answers. The rest is for connections, the cache of
// records, the embedded etcd, and garbage. If other programs share the memory, it is smaller.
func (l Limit) Bodies() int64 {
	if l.From == FromMachine {
		return l.Bytes / 4
	}
	return l.Bytes / 2
}

// Find finds the limit of this process, and sets it in the runtime unless it is set already, so
// that garbage is collected in time: a cgroup kills what the runtime would have let grow to twice
// the size of what is in use.
func Find() Limit {
	l := chooseLimit(debug.SetMemoryLimit(-1), memlimit.FromCgroup, memlimit.FromSystem)
	if l.From == FromCgroup {
		debug.SetMemoryLimit(l.Bytes)
	}
	return l
}

// chooseLimit returns the first limit that exists. Of a cgroup's, a tenth is for what the runtime
// does not count: the program itself, stacks of the kernel, buffers of sockets.
func chooseLimit(runtime int64, cgroup, machine func() (uint64, error)) Limit {
	total, err := machine()
	if err != nil || total == 0 || total > math.MaxInt64 {
		total = unknownMachine
	}
	if runtime != math.MaxInt64 {
		return Limit{runtime, FromRuntime}
	}
	if n, err := cgroup(); err == nil && n < total {
		return Limit{int64(n) / 10 * 9, FromCgroup} //nolint:gosec // less than total
	}
	return Limit{int64(total), FromMachine} //nolint:gosec // compared above
}
