package wire

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hooklock/proxy/wiretest"
)

const (
	upgradeRequest = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nupgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"
	upgradeSent    = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nupgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"
	switching      = "HTTP/1.1 101 Switching\r\nupgrade: WebSocket\r\nX-odd:  1\r\nConnection: upgrade\r\n\r\n"
)

func TestATunnelCarriesBytesBothWaysAndEachEnd(t *testing.T) {
	for _, secure := range []bool{false, true} {
		sent := make(chan string, 1)
		serve := func(c *wiretest.Conn) {
			head, _ := c.ReadHead()
			sent <- head
			_ = c.Say(switching + "hello ") // the first bytes travel with the head
			_, _ = io.Copy(c, c)
			_ = c.Say("bye")
			_ = c.Finish()
		}
		up := wiretest.Serve(t, serve)
		if secure {
			up = wiretest.ServeTLS(t, serve)
		}
		var tunnels Tunnels
		d, u, _ := passDoor(t, up, &tunnels)
		c := dial(t, d.Addr)
		_, _ = io.WriteString(c, upgradeRequest+"early ") // and so do the sender's
		if got := <-sent; got != upgradeSent {
			t.Errorf("upstream got %q", got)
		}
		want := switching + "hello early "
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
		_, _ = io.WriteString(c, "ping")
		if _, err := io.ReadFull(c, got[:4]); err != nil || string(got[:4]) != "ping" {
			t.Fatalf("got %q, %v", got[:4], err)
		}
		if tunnels.running() != 1 {
			t.Errorf("%d tunnels", tunnels.running())
		}
		_ = c.(*net.TCPConn).CloseWrite()
		if rest, err := io.ReadAll(c); err != nil || string(rest) != "bye" {
			t.Errorf("after the half-close got %q, %v", rest, err)
		}
		if err := tunnels.Close(t.Context()); err != nil || tunnels.running() != 0 || u.idleNow() != 0 {
			t.Errorf("%v, %d tunnels", err, tunnels.running())
		}
	}
}

func TestClosingTheTunnelsEndsThemAll(t *testing.T) {
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadHead()
		_ = c.Say(switching)
		_, _ = io.Copy(io.Discard, c)
	})
	var tunnels Tunnels
	d, _, failed := passDoor(t, up, &tunnels)
	var senders []net.Conn
	for range 8 {
		c := dial(t, d.Addr)
		_, _ = io.WriteString(c, upgradeRequest)
		if _, err := io.ReadFull(c, make([]byte, len(switching))); err != nil {
			t.Fatal(err)
		}
		senders = append(senders, c)
	}
	if tunnels.running() != 8 {
		t.Errorf("%d tunnels", tunnels.running())
	}
	if err := tunnels.Close(t.Context()); err != nil || tunnels.running() != 0 {
		t.Errorf("%v, %d tunnels", err, tunnels.running())
	}
	for _, c := range senders {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("a sender still reads %d bytes", n)
		}
	}
	status, _ := knock(t, d.Addr, upgradeRequest)
	if status != 503 || <-failed != errTunnelsClosed {
		t.Errorf("a tunnel after Close gives status %d", status)
	}
	if err := tunnels.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestARefusedUpgradeIsAnOrdinaryAnswer(t *testing.T) {
	for _, body := range []string{"", "upgrade required", strings.Repeat("x", 100000)} {
		up := once(t, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
		var tunnels Tunnels
		d, _, _ := passDoor(t, up, &tunnels)
		c := dial(t, d.Addr)
		_, _ = io.WriteString(c, upgradeRequest)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 426 || string(got) != body || tunnels.running() != 0 {
			t.Errorf("%v, %d bytes, %v", resp.Status, len(got), err)
		}
	}
}

// TestNeverTunnelsToHTTP: such a tunnel would carry deliveries past the routes.
func TestNeverTunnelsToHTTP(t *testing.T) {
	for _, protocol := range []string{"h2c", "HTTP/2.0", "TLS/1.0", "websocket, h2c", ""} {
		up := once(t, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
		u := pool(t, up)
		var ans Answer
		s, err := u.Upgrade(soon(t), []byte(upgradeSent), &ans)
		wantSent(t, err, AnswerBegun)
		if s != nil {
			t.Errorf("%q was switched to", protocol)
		}
	}
	up := wiretest.Script(t, okAnswer)
	var tunnels Tunnels
	d, _, _ := passDoor(t, up, &tunnels)
	_, _ = knock(t, d.Addr, strings.Replace(upgradeRequest, "websocket", "h2c", 1))
	if got := up.Await(t, 1); strings.Contains(strings.ToLower(got), "upgrade") {
		t.Errorf("upstream got %q", got)
	}
}

// TestATunnelThatIsNotTakenOverIsClosed: fasthttp does not call back when the sender's connection
// broke meanwhile.
func TestATunnelThatIsNotTakenOverIsClosed(t *testing.T) {
	ended := make(chan struct{})
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		defer close(ended)
		_, _ = c.ReadHead()
		_ = c.Say(switching)
		_, _ = io.Copy(io.Discard, c)
	})
	u := pool(t, up)
	var ans Answer
	s, err := u.Upgrade(soon(t), []byte(upgradeSent), &ans)
	if err != nil || s == nil || ans.Status != 101 {
		t.Fatal(err, s)
	}
	var tunnels Tunnels
	ctx := newCtx()
	if err := tunnels.Serve(ctx, s); err != nil || tunnels.running() != 1 {
		t.Fatal(err)
	}
	if err := tunnels.Close(t.Context()); err != nil || tunnels.running() != 0 {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the upstream's connection is still open")
	}
}
