package wire

import (
	"io"
	"strings"
	"testing"

	"hooklock/proxy/wiretest"
)

// TestAConnectionThatCarriedABodyIsUsedAgainOnlyWhereTheServiceIsKnownToReadIt: see Upstream.Reuses.
func TestAConnectionThatCarriedABodyIsUsedAgainOnlyWhereTheServiceIsKnownToReadIt(t *testing.T) {
	const bare = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	send := func(head, body string) func(*Upstream, *Answer) error {
		return func(u *Upstream, ans *Answer) error {
			return u.Send(soon(t), []byte(head), []byte(body), u.Reuses([]byte(body), true), ans)
		}
	}
	stream := func(head, body string) func(*Upstream, *Answer) error {
		return func(u *Upstream, ans *Answer) error {
			b := &RequestBody{Reader: strings.NewReader(body), Length: int64(len(body))}
			return u.Stream(soon(t), []byte(head), b, ans)
		}
	}
	long := strings.Repeat("x", 32<<10)
	for _, tt := range []struct {
		name     string
		exchange func(*Upstream, *Answer) error
		reads    Reuse
		again    bool
	}{
		{"Send without a body", send(bare, ""), ReuseNever, true},
		{"Send with a body", send(postHead, "body"), ReuseNever, false},
		{"Send with a body to a service that reads it", send(postHead, "body"), ReuseAlways, true},
		{"Stream without a body", stream(bare, ""), ReuseNever, true},
		{"Stream with a body", stream(postHead, "body"), ReuseAlways, false},
		{"Stream with a long body", stream(strings.Replace(postHead, "4", itoa(len(long)), 1), long), ReuseAlways, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := pool(t, wiretest.Script(t, okAnswer), func(o *Options) { o.ReuseAfterBody = tt.reads })
			var ans Answer
			if err := tt.exchange(u, &ans); err != nil || ans.Status != 200 {
				t.Fatalf("%v, %+v", err, ans)
			}
			if ans.Rest != nil {
				if _, err := io.Copy(io.Discard, ans.Rest); err != nil {
					t.Fatal(err)
				}
			}
			if again := u.idleNow() == 1; again != tt.again {
				t.Errorf("the connection is kept: %v, want %v", again, tt.again)
			}
		})
	}
}

// A service may close a connection that it was to keep at any moment, and a body that was sent then may have arrived.
func TestABodyTakesNoConnectionThatAnEarlierRequestLeft(t *testing.T) {
	for reads, want := range map[Reuse]int{ReuseNever: 2, ReuseAlways: 1} {
		up := wiretest.Script(t, okAnswer)
		u := pool(t, up, func(o *Options) { o.ReuseAfterBody = reads })
		var ans Answer
		for _, body := range []string{"", "body"} {
			head := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n"
			if err := u.Send(soon(t), []byte(head), []byte(body), u.Reuses([]byte(body), true), &ans); err != nil {
				t.Fatal(err)
			}
		}
		if got := up.Conns(); got != want {
			t.Errorf("reuse_after_body %v: %d connections, want %d", reads, got, want)
		}
	}
}
