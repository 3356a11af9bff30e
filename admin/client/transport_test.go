package client

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/proxy/wiretest"
)

// As a shell makes of --token-file <(pass hooklock).
func TestATokenThatComesThroughAPipeIsReadOnce(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := io.WriteString(write, "piped\n"); err != nil || write.Close() != nil {
		t.Fatal(err)
	}
	source := TokenFile(fmt.Sprintf("/dev/fd/%d", read.Fd()))
	for range 2 {
		if token, err := source(); err != nil || token != "piped" {
			t.Errorf("%q %v", token, err)
		}
	}
}

func TestATokenThatIsReplacedOnDiskIsUsedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	s := script(t, answer{200, aLock, nil}, answer{200, aLock, nil})
	c, err := New(Options{URL: s.url, Token: TokenFile(path)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Lock(t.Context(), "w"); err != nil {
			t.Fatal(err)
		}
		if got := s.last().authorization; got != "Bearer "+token {
			t.Errorf("got %q", got)
		}
	}
	for _, text := range []string{"", "\n", "two words\n", "two\nlines\n", "umläut", "\x00"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Lock(t.Context(), "w"); err == nil ||
			strings.TrimSpace(text) != "" && strings.Contains(err.Error(), strings.TrimSpace(text)) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if n := len(s.got); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestASocketIsReachedByItsPath(t *testing.T) {
	path := wiretest.SocketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{answers: []answer{{200, aLock, nil}}}
	server := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	defer func() { _ = server.Close(); <-done }()
	c, err := New(Options{URL: "unix://" + path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Lock(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if got := s.last(); got.host != "localhost" || got.authorization != "" {
		t.Errorf("got %+v", got)
	}
}

func TestOptionsThatCannotWorkAreRefusedAtOnce(t *testing.T) {
	for name, o := range map[string]Options{
		"no scheme":                 {URL: "127.0.0.1:8079"},
		"another scheme":            {URL: "ftp://a"},
		"no host":                   {URL: "http://"},
		"a password in it":          {URL: "http://a:b@c"},
		"a query":                   {URL: "http://a/?b"},
		"a socket with a host":      {URL: "unix://a/b"},
		"no URL":                    {URL: "http://a b"},
		"certificates without TLS":  {URL: "http://a", TLS: TLS{CAFile: "x"}},
		"a CA file that is away":    {URL: "https://a", TLS: TLS{CAFile: "/nowhere"}},
		"a certificate, and no key": {URL: "https://a", TLS: TLS{CertFile: "x"}},
	} {
		if c, err := New(o); err == nil {
			t.Errorf("%s: got %+v", name, c)
		}
	}
}
