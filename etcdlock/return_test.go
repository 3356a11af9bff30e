package etcdlock

import (
	"net"
	"sync"
	"testing"
	"time"
)

// absentEtcd is where an etcd was: attempts to reach it come to nothing, and are counted.
func absentEtcd(t *testing.T, attempt func(net.Conn)) (endpoint string, attempts <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { <-over; _ = c.Close() })
			attempt(c)
			select {
			case seen <- struct{}{}:
			case <-over:
				return
			}
		}
	})
	t.Cleanup(func() { close(over); _ = listener.Close(); wg.Wait() })
	return listener.Addr().String(), seen
}

// An outage of any length ends within the pause of two attempts, so these must not grow. gRPC's own
// would be six attempts in the time that this test has, and one of those that nobody answers.
func TestAnEtcdThatIsAwayForLongIsLookedForAsOftenAsAtFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options Options
		attempt func(net.Conn)
		want    int
	}{
		{"its connections are refused", Options{}, func(c net.Conn) { _ = c.Close() }, 15},
		{"its connections are refused, with a user", Options{Username: "u", Password: "p"}, func(c net.Conn) {
			_ = c.Close()
		}, 15},
		{"nobody answers", Options{}, func(net.Conn) {}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			endpoint, attempts := absentEtcd(t, c.attempt)
			o := c.options
			o.Endpoints = []string{endpoint}
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer closeStore(t, s)
			deadline := time.After(patience)
			for n := range c.want {
				select {
				case <-attempts:
				case <-deadline:
					t.Fatalf("%d attempts in %v, want %d", n, patience, c.want)
				}
			}
		})
	}
}
