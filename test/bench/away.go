//go:build linux

package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// away carries connections to target and lets what comes back arrive later by far, as from a member
// that is elsewhere or whose disk takes that long. It ends with ctx, and its connections with it.
func away(ctx context.Context, target string, far time.Duration) (address string, wait func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { carry(ctx, near, target, far) })
		}
	})
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	return listener.Addr().String(), all.Wait, nil
}

func carry(ctx context.Context, near net.Conn, target string, far time.Duration) {
	defer near.Close()
	member, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer member.Close()
	defer context.AfterFunc(ctx, func() { _, _ = near.Close(), member.Close() })()
	type late struct {
		text []byte
		due  time.Time
	}
	came := make(chan late, 1024)
	var ways sync.WaitGroup
	ways.Go(func() { // what is asked is not late
		_, _ = io.Copy(member, near)
		_ = member.Close()
	})
	ways.Go(func() {
		defer close(came)
		for {
			text := make([]byte, 32<<10)
			n, err := member.Read(text)
			if n > 0 {
				came <- late{text[:n], time.Now().Add(far)}
			}
			if err != nil {
				return
			}
		}
	})
	var broken error
	for l := range came {
		time.Sleep(time.Until(l.due))
		if broken == nil {
			_, broken = near.Write(l.text)
		}
	}
	_ = near.Close()
	ways.Wait()
}
