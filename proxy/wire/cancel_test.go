package wire

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hooklock/proxy/wiretest"
)

func TestADeadlineEndsTheCallAndSaysHowFarItCame(t *testing.T) {
	large := strings.Repeat("x", 32<<20)
	tests := []struct {
		name, body string
		serve      func(c *wiretest.Conn)
		evidence   Evidence
	}{
		{"silent after the request", "body", func(c *wiretest.Conn) { _, _ = c.ReadRequest() }, BodyWritten},
		{"silent in the header", "body", func(c *wiretest.Conn) {
			_, _ = c.ReadRequest()
			_ = c.Say("HTTP/1.1 200 OK\r\n")
		}, AnswerBegun},
		{"silent in the body", "body", func(c *wiretest.Conn) {
			_, _ = c.ReadRequest()
			_ = c.Say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na")
		}, AnswerBegun},
		{"reads nothing", large, func(c *wiretest.Conn) {}, HeadWritten},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			up := wiretest.Serve(t, func(c *wiretest.Conn) {
				defer close(ended)
				tt.serve(c)
				_, _ = io.Copy(io.Discard, c) // until the connection is closed
			})
			if tt.evidence == HeadWritten {
				up = wiretest.Serve(t, func(c *wiretest.Conn) { <-ended })
			}
			u := pool(t, up)
			head, body := []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+itoa(len(tt.body))+"\r\n\r\n"),
				[]byte(tt.body)
			why := errors.New("max_duration is over")
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, why)
			defer cancel()
			var ans Answer
			err := u.Send(following(ctx, t), head, body, true, &ans)
			serr := wantSent(t, err, tt.evidence)
			if !serr.Timeout || !errors.Is(err, why) || u.idleNow() != 0 {
				t.Errorf("error is %v, timeout %v", err, serr.Timeout)
			}
			if tt.evidence == HeadWritten {
				close(ended)
			}
			<-ended
		})
	}
}

func TestACancelKeepsItsCause(t *testing.T) {
	why := errors.New("a person said so")
	ctx, cancel := context.WithCancelCause(context.Background())
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		cancel(why)
		_, _ = io.Copy(io.Discard, c)
	})
	u := pool(t, up)
	var ans Answer
	err := u.Send(following(ctx, t), []byte(postHead), []byte("body"), true, &ans)
	if serr := wantSent(t, err, BodyWritten); serr.Timeout || !errors.Is(err, why) {
		t.Errorf("error is %v", err)
	}
	err = u.Send(following(ctx, t), []byte(postHead), []byte("body"), true, &ans)
	if serr := wantSent(t, err, NotDialled); serr.Sent() || !errors.Is(err, why) {
		t.Errorf("error is %v", err)
	}
}

func TestSaysThatNothingWasSentWhereNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	u := NewUpstream(Options{Addr: addr})
	defer u.Close()
	var ans Answer
	err = u.Send(soon(t), []byte(postHead), []byte("body"), true, &ans)
	if serr := wantSent(t, err, NotDialled); serr.Sent() || serr.Timeout {
		t.Errorf("error is %v", err)
	}
}

func TestAConnectTimeoutSaysWhatItWaitedFor(t *testing.T) {
	// it accepts, and TLS never answers
	up := wiretest.Serve(t, func(c *wiretest.Conn) { _, _ = io.Copy(io.Discard, c) })
	_, client := wiretest.Certify(t)
	silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	for _, c := range []struct {
		waits string
		o     Options
	}{
		{"lookup service.example.", Options{Addr: "service.example.:80"}},
		{"TLS handshake", Options{Addr: up.Addr, TLS: client}},
	} {
		t.Run(c.waits, func(t *testing.T) {
			c.o.ConnectTimeout = time.Second
			u := NewUpstream(c.o)
			defer u.Close()
			u.dialer.Resolver = silent
			var ans Answer
			err := u.Send(soon(t), []byte(postHead), []byte("body"), true, &ans)
			if serr := wantSent(t, err, NotDialled); !serr.Timeout || serr.Sent() {
				t.Errorf("error is %v", err)
			}
			if text := err.Error(); !strings.Contains(text, "connect_timeout") || !strings.Contains(text, c.waits) ||
				strings.Contains(text, "\n") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

func TestReadsAnAnswerThatComesBeforeTheBodyIsWritten(t *testing.T) {
	for _, closes := range []bool{true, false} {
		up := wiretest.Serve(t, func(c *wiretest.Conn) {
			_, _ = c.ReadHead()
			_ = c.Say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			if closes {
				_ = c.Finish()
			}
			_, _ = c.Read(make([]byte, 1))
			_, _ = io.Copy(io.Discard, c)
		})
		u := pool(t, up)
		body := make([]byte, 16<<20)
		var ans Answer
		err := u.Send(soon(t), []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"),
			body, true, &ans)
		if err != nil || ans.Status != 413 || string(ans.Body) != "no" || ans.Evidence != AnswerWhole {
			t.Errorf("%v, %+v", err, ans)
		}
	}
}

// TestAStormOfCancelsLeaksNothing: whatever is cancelled when, an answer belongs to its request,
// and nothing runs on.
func TestAStormOfCancelsLeaksNothing(t *testing.T) {
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for {
			request, err := c.ReadRequest()
			if err != nil {
				return
			}
			_, body, _ := strings.Cut(request, "\r\n\r\n")
			if c.Say("HTTP/1.1 200 OK\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n") != nil || c.Say(body) != nil {
				return
			}
		}
	})
	u := pool(t, up)
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			var ans Answer
			var x Call // one for all: what is late for one exchange must not end the next
			for i := range 200 {
				body := strings.Repeat(string(rune('a'+w)), 1+i%7) + itoa(i)
				if i%10 == 0 {
					body = strings.Repeat(body, 40<<10)
				}
				head := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n"
				ctx, cancel := context.WithCancel(context.Background())
				timer := time.AfterFunc(time.Duration(random.IntN(400))*time.Microsecond, cancel)
				x.Begin(time.Now(), 20*time.Second)
				x.Follow(ctx)
				err := u.Send(&x, []byte(head), []byte(body), true, &ans)
				x.End()
				timer.Stop()
				cancel()
				if err == nil && string(ans.Body) != body {
					t.Errorf("got the answer to another request")
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("error is %v", err)
				}
			}
		})
	}
	workers.Wait()
	var ans Answer
	if err := post(t, u, &ans); err != nil || string(ans.Body) != "body" {
		t.Errorf("after the storm: %q, %v", ans.Body, err)
	}
}

// TestATimerOfAnEarlierExchangeEndsNoLaterOne: one timer serves all exchanges of a call, and is not
// stopped between them.
func TestATimerOfAnEarlierExchangeEndsNoLaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("time was over")
		x := Call{Late: late}
		lives := func(when string) {
			t.Helper()
			if err := x.Cause(); err != nil {
				t.Errorf("%s: ended by %v", when, err)
			}
		}
		x.Begin(time.Now(), time.Minute)
		x.End()
		x.Begin(time.Now(), time.Hour)
		time.Sleep(2 * time.Minute)
		lives("the first one's time is over")
		x.Pause()
		time.Sleep(2 * time.Hour)
		lives("its clock stands")
		x.Give(time.Hour)
		time.Sleep(2 * time.Hour)
		if was, err := x.endCause(); err != late || !was {
			t.Errorf("ended by %v, late %v", err, was)
		}
		x.End()
		x.Begin(time.Now(), time.Hour)
		lives("it has begun again")
		x.End()
		time.Sleep(2 * time.Hour) // no call runs
		lives("it is over")
	})
}

// TestNoLaterCallReachesTheSenderOfAnEarlierOne: the Interrupt of a body is over with its call,
// also where the body was not read to its end.
func TestNoLaterCallReachesTheSenderOfAnEarlierOne(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		answered := make(chan struct{})
		up := wiretest.Serve(t, func(c *wiretest.Conn) {
			_, _ = c.ReadHead()
			_ = c.Say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			<-answered
			_ = c.Reset() // it takes the body no more
		})
		u := pool(t, up)
		interrupts := make(chan struct{}, 2)
		body := &RequestBody{Reader: boundless{}, Length: 1 << 40, Interrupt: func() { interrupts <- struct{}{} }}
		var ans Answer
		x := &Call{Late: errors.New("late")}
		x.Begin(time.Now(), time.Minute)
		if cancelled {
			x.Cancel(errors.New("of the earlier call"))
		}
		err := u.Stream(x, []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+itoa(1<<40)+"\r\n\r\n"), body, false,
			&ans)
		close(answered)
		if err == nil {
			<-ans.exchange.pump.done
			_, err = io.ReadAll(ans.Rest)
		}
		if cancelled != (err != nil) {
			t.Fatal(err)
		}
		x.End()
		x.Begin(time.Now(), time.Minute)
		x.Cancel(errors.New("of the later call"))
		x.End()
		if len(interrupts) > 0 {
			t.Errorf("the sender of an earlier call was interrupted; that call was cancelled: %v", cancelled)
		}
	}
}

// boundless is a body without an end.
type boundless struct{}

func (boundless) Read(p []byte) (int, error) { return len(p), nil }
