package connect

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// closedConn notes that it was closed.
type closedConn struct {
	net.Conn
	closed bool
}

func (c *closedConn) Close() error { c.closed = true; return nil }

// TestASilentAddressOfANameDoesNotTakeTheTimeOfTheOthers, and what connects too late is closed.
func TestASilentAddressOfANameDoesNotTakeTheTimeOfTheOthers(t *testing.T) {
	refused := errors.New("connection refused")
	for what, c := range map[string]struct {
		addresses []string
		begun     []time.Duration // when each address was dialled
		took      time.Duration
		err       error
	}{
		"the first answers":   {[]string{"good", "good"}, []time.Duration{0}, 0, nil},
		"the first is silent": {[]string{"silent", "good"}, []time.Duration{0, 300}, 300, nil},
		"the first two are": {[]string{"silent", "silent", "good"}, []time.Duration{0, 300, 600},
			600, nil},
		"the first refuses": {[]string{"refuses", "good"}, []time.Duration{0, 0}, 0, nil},
		"one refuses while another is silent": {[]string{"silent", "refuses", "good"}, []time.Duration{0, 300, 300},
			300, nil},
		"the first is slow, and answers first": {[]string{"slow", "slow"}, []time.Duration{0, 300}, 400, nil},
		"all refuse":                           {[]string{"refuses", "refuses"}, []time.Duration{0, 0}, 0, refused},
		"all are silent": {[]string{"silent", "silent"}, []time.Duration{0, 300}, 1000,
			context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var mu sync.Mutex
			var begun []time.Duration
			var made []*closedConn
			began := time.Now()
			conn, err := connectFirst(ctx, c.addresses, nextAddress,
				func(ctx context.Context, address string) (net.Conn, error) {
					mu.Lock()
					begun = append(begun, time.Since(began)/time.Millisecond)
					mu.Unlock()
					switch address {
					case "refuses":
						return nil, refused
					case "silent":
						<-ctx.Done()
						return nil, ctx.Err()
					case "slow":
						time.Sleep(400 * time.Millisecond)
					}
					mu.Lock()
					defer mu.Unlock()
					made = append(made, &closedConn{})
					return made[len(made)-1], nil
				})
			for _, m := range made {
				if m.closed == (m == conn) {
					t.Errorf("%s: the connection that is used was closed, or another was not", what)
				}
			}
			if took := time.Since(began) / time.Millisecond; took != c.took && !slices.Contains(c.addresses, "slow") {
				t.Errorf("%s: it took %d ms, want %d", what, took, c.took)
			}
			if !errors.Is(err, c.err) || (conn == nil) != (c.err != nil) || !slices.Equal(begun, c.begun) {
				t.Errorf("%s: connected %v, %v; dialled after %d ms, want %d", what, conn != nil, err, begun, c.begun)
			}
		})
	}
}
