package testkit

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

// Ports are given out below those that the kernel takes for connections (32768 and up, ip(7)): a port from there that was free a moment
// ago may be somebody's connection by the time a program listens on it, which has cost test runs.
const (
	firstPort = 12000
	portSlots = 20 // processes that test at the same time begin at different places
	slotPorts = 1000
)

// ports is where this process is in its slot. It belongs to the process because ports do: no two tests of it get the same one.
var ports struct {
	mu   sync.Mutex
	next int
}

// freePorts are n different loopback addresses that nobody listens on, and that nobody else in this process is given.
func freePorts(tb testing.TB, n int) []string {
	tb.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	addresses := make([]string, 0, n)
	for range slotPorts {
		if len(addresses) == n {
			return addresses
		}
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+os.Getpid()%portSlots*slotPorts+ports.next%slotPorts)
		ports.next++
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			addresses = append(addresses, address)
		}
	}
	tb.Fatalf("%d free ports: only %d found", n, len(addresses))
	return nil
}

// FreePort is a loopback address that nobody listens on, and that nobody else in this process is given.
func FreePort(tb testing.TB) string { tb.Helper(); return freePorts(tb, 1)[0] }
