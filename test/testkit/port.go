package testkit

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

// Ports are given out below those that the kernel takes for connections (32768 and up, ip(7)): a
// port from there that was free a moment ago may be somebody's connection by the time a program
// listens on it, which has cost test runs.
const (
	firstPort = 12000
	portSlots = 20 // processes that test at the same time begin at different places
	slotPorts = 1000
)

// ports is where this process is in its slot. It belongs to the process because ports do: no two
// tests of it get the same one. The first port of a slot is listened on as long as the process
// lives, so the slot is this process's alone: what it gives out is listened on a while later, and
// would be free until then for somebody with the same slot.
var ports struct {
	mu   sync.Mutex
	slot net.Listener // nil: none has been taken
	base int
	next int
}

// takeSlot takes a slot that no other process has.
func takeSlot(tb testing.TB) {
	tb.Helper()
	for i := range portSlots {
		base := firstPort + (os.Getpid()+i)%portSlots*slotPorts
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base)); err == nil {
			ports.slot, ports.base = l, base
			return
		}
	}
	tb.Fatalf("%d processes test at the same time, or all ports from %d in steps of %d are taken", portSlots, firstPort,
		slotPorts)
}

// freePorts are n different loopback addresses that nobody listens on, and that nobody else in this
// process is given.
func freePorts(tb testing.TB, n int) []string {
	tb.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if ports.slot == nil {
		takeSlot(tb)
	}
	addresses := make([]string, 0, n)
	for range slotPorts {
		if len(addresses) == n {
			return addresses
		}
		address := fmt.Sprintf("127.0.0.1:%d", ports.base+1+ports.next%(slotPorts-1))
		ports.next++
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			addresses = append(addresses, address)
		}
	}
	tb.Fatalf("%d free ports: only %d found", n, len(addresses))
	return nil
}

// FreePort is a loopback address that nobody listens on, and that nobody else in this process is
// given.
func FreePort(tb testing.TB) string { tb.Helper(); return freePorts(tb, 1)[0] }
