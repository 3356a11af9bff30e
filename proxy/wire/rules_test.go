package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestAStatusLineHasOneForm(t *testing.T) {
	for _, line := range []string{
		"HTTP/1.1x200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1 20x OK", "HTTP/1.2 200 OK",
		"HTTP/1.1 200OK", "HTTP/1.1 200\tOK", "HTTP/1.1  200", "HTTP/1.1 20", "HTTP/1.1 099 OK", "HTTP/1.1 200 O\x01K",
	} {
		if err := parseStatusLine([]byte(line), new(Answer)); !errors.Is(err, ErrStatusLine) {
			t.Errorf("%q: %v", line, err)
		}
	}
	for line, want := range map[string]string{"HTTP/1.1 200": "", "HTTP/1.0 100 ": "", "HTTP/1.1 999  a b": " a b"} {
		ans := new(Answer)
		if err := parseStatusLine([]byte(line), ans); err != nil || string(ans.Reason) != want || ans.Status < 100 {
			t.Errorf("%q: %v, %+v", line, err, ans)
		}
	}
}

// What one reader of a request takes as its end must be what the next one takes.
func TestTheRawBytesOfARequestAreFramedOnce(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\n"
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		"a length":    {head + "Content-Length: 3\r\n\r\nabc" + head, nil},
		"two lengths": {head + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", ErrFraming},
		"chunks and a length": {head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
			ErrFraming},
		"a length and chunks": {head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			ErrFraming},
		"no length of nothing":        {head + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", ErrFraming},
		"another coding":              {head + "Transfer-Encoding: gzip\r\n\r\n", ErrFraming},
		"a name that CGI reads alike": {head + "Content_Length: 3\r\n\r\n", ErrFraming},
		"a length that is no number":  {head + "Content-Length: 3,3\r\n\r\nabc", ErrFraming},
		"a line as long as it may be": {head + "Content-Length:" +
			strings.Repeat(" ", framingLine-len("Content-Length:3")) + "3\r\n\r\nabc", nil},
		"one longer": {head + "Content-Length:" +
			strings.Repeat(" ", framingLine-len("Content-Length:3")+1) + "3\r\n\r\nabc", errLongLine},
		"a head that ends its lines so": {"POST / HTTP/1.1\nHost: a\r\n\r\n", errBareLF},
	} {
		for _, step := range []int{1, 7, len(c.raw)} { // as the bytes may come
			s := new(strict)
			var err error
			for raw := c.raw; len(raw) > 0 && err == nil; {
				n := min(step, len(raw))
				_, err = s.checkBytes([]byte(raw[:n]))
				raw = raw[n:]
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s, %d bytes at a time: %v, want %v", name, step, err, c.want)
			}
		}
	}
}

func TestBehindAnUpgradeWithoutABodyMayComeAnotherProtocol(t *testing.T) {
	const other = "\x81\x00\n"
	for lines, waits := range map[string]bool{"": true, "Content-Length: 0\r\n": true, "Content-Length: 3\r\n": false} {
		head := "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n" + lines + "\r\n"
		s := new(strict)
		good, err := s.checkBytes([]byte(head + other))
		if stopped := err == nil && good == len(head); stopped != waits {
			t.Errorf("%q: %d bytes of %d in order, %v", lines, good, len(head), err)
		}
	}
}

func TestConnectionMayTakeATraceAway(t *testing.T) {
	got := rebuild(t, "GET / HTTP/1.1\r\nHost: a\r\nTraceparent: 1\r\nX: 2\r\nConnection: traceparent\r\n\r\n",
		HeadOptions{})
	if strings.Contains(strings.ToLower(got), "traceparent") || !strings.Contains(got, "X: 2") {
		t.Errorf("%q", got)
	}
}

func TestEmptyPlacesInAListOfProtocolsSayNothing(t *testing.T) {
	for list, want := range map[string]bool{"websocket": true, ", websocket,,": true, "": false, ",": false,
		"websocket, h2c": false, "web socket": false, ",tls/1.0": false, "a/1, b": true} {
		if mayTunnel([]byte(list)) != want {
			t.Errorf("%q: %v", list, !want)
		}
	}
}

func TestAnUnlimitedBudgetCountsNothing(t *testing.T) {
	for _, a := range []*Account{nil, new(Account)} {
		a.Hold(5)
		a.Give(5)
		if a != nil {
			a.Close()
		}
	}
}
