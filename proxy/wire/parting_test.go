package wire

import (
	"io"
	"testing"

	"hooklock/proxy/wiretest"
)

// The port of a closed connection is occupied for a minute on the side that closed first, and this
// machine has 28 000 of them for a service.
func TestAServiceThatIsToCloseItsConnectionDoesSoFirst(t *testing.T) {
	for _, network := range []string{"tcp", "tls"} {
		t.Run(network, func(t *testing.T) {
			closes, heard := make(chan struct{}), make(chan error, 1)
			serve := func(c *wiretest.Conn) {
				if _, err := c.ReadRequest(); err != nil || c.Say(named("x")) != nil {
					return
				}
				<-closes
				_ = c.Finish()
				_, err := c.Read(make([]byte, 1))
				heard <- err
			}
			up := wiretest.Serve(t, serve)
			if network == "tls" {
				up = wiretest.ServeTLS(t, serve)
			}
			u := careful(t, up)
			deliver(t, u, event)
			u.partNow()
			until(t, "the connection is left to its service", func() bool { return u.partingNow() == 1 })
			close(closes)
			if err := <-heard; err != io.EOF {
				t.Errorf("the service heard %v behind its FIN, want one", err)
			}
			until(t, "nothing is left", func() bool { return u.partingNow() == 0 })
		})
	}
}

func TestAServiceThatKeepsAConnectionWhichItIsToCloseKeepsItNotForLong(t *testing.T) {
	heard := make(chan error, 1)
	u := careful(t, wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil || c.Say(named("x")) != nil {
			return
		}
		_, err := c.Read(make([]byte, 1))
		heard <- err
	}))
	deliver(t, u, event)
	if err := <-heard; err != io.EOF {
		t.Errorf("the service heard %v, want the end", err)
	}
}

func TestClosingThePoolClosesWhatIsLeftToTheService(t *testing.T) {
	heard := make(chan error, 1)
	u := careful(t, wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil || c.Say(named("x")) != nil {
			return
		}
		_, err := c.Read(make([]byte, 1))
		heard <- err
	}))
	deliver(t, u, event)
	_ = u.Close()
	if got := u.partingNow(); got != 0 {
		t.Errorf("%d connections are left", got)
	}
	if err := <-heard; err != io.EOF {
		t.Errorf("the service heard %v, want the end", err)
	}
}
