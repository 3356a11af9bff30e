package serve

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hooklock/config"
	"hooklock/proxy/wire"
)

func TestConnectionsLeaveRoomForTheFilesOfTheProcess(t *testing.T) {
	for _, tt := range []struct {
		wanted int
		health string
		limit  uint64
		want   int // of senders
		admin  int
	}{
		{10000, "", 0, 10000, 2000},
		{10000, "", 1 << 40, 10000, 2000},
		{10000, "", 65536, 10000, 2000},
		{10000, "", 20778, 10000, 649},
		{10000, "", 20776, 9999, 649},
		{10000, "127.0.0.1:1", 20778, 9676, 649},
		{40000, "", 82128, 40000, 2000},
		{40000, "", 82127, 39999, 2000},
		{10000, "", 1024, 432, 32},
		{10000, "", 256, 60, 8},
		{10, "", 256, 10, 8},
		{10, "", 64, 1, 2},
	} {
		c := config.Default()
		c.Limits.MaxConnections, c.Health.Listen = tt.wanted, tt.health
		b := boundsFor(c, tt.limit)
		if b.Senders != tt.want || b.Admin != tt.admin {
			t.Errorf("%d connections of %d files: %+v", tt.wanted, tt.limit, b)
		}
		if warns := strings.Contains(b.Warning, "limits.max_connections"); warns != (tt.want < tt.wanted) {
			t.Errorf("%d connections of %d files: warning %q", tt.wanted, tt.limit, b.Warning)
		}
		if files := uint64(2*b.Senders + ownFiles + b.Admin); b.Senders > 1 && tt.limit > 0 && files > tt.limit {
			t.Errorf("%d connections of %d files: %d", tt.wanted, tt.limit, files)
		}
	}
}

func TestALineSaysWhatHappenedSinceTheLastOne(t *testing.T) {
	var log bytes.Buffer
	s := &Service{Log: &ServerLog{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	first := wire.Counts{Open: 10, Refused: 3, ClosedIdle: 2}
	second := wire.Counts{Open: 9, Refused: 8, ClosedIdle: 2, Failed: 4, Failure: syscall.EMFILE}
	said := s.tellTrouble("listen", wire.Counts{}, first, 10)
	said = s.tellTrouble("listen", said, second, 10)
	s.tellTrouble("listen", said, second, 10) // nothing new: no line
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{
		"msg=connections.full listener=listen refused=3 closed_idle=2 open=10 limit=10",
		"msg=connections.full listener=listen refused=5 closed_idle=0 open=9 limit=10",
		`msg=accept.failed listener=listen failures=4 error="too many open files"`,
	} {
		if len(lines) != 3 || !strings.HasSuffix(lines[i], want) {
			t.Errorf("want %s in:\n%s", want, log.String())
		}
	}
}

// TestOneConnectionTooManyIsToldSoWhereItCanReadIt: to a client of TLS, an
// answer without TLS looks like a broken server.
func TestOneConnectionTooManyIsToldSoWhereItCanReadIt(t *testing.T) {
	for name, of := range map[string]struct {
		tls  *tls.Config
		want string
	}{"plain": {nil, "HTTP/1.1 503 "}, "TLS": {&tls.Config{MinVersion: tls.VersionTLS12}, ""}} {
		t.Run(name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &Service{bounds: connectionBounds{Admin: 1}}
			l := s.boundListener(inner, of.tls)
			taken := make(chan net.Conn, 2)
			var accepting sync.WaitGroup
			accepting.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					taken <- c
				}
			})
			defer accepting.Wait()
			defer func() { _ = l.Close() }()
			dial := func() net.Conn {
				c, err := net.Dial("tcp", inner.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			first := dial()
			defer func() { _ = first.Close() }()
			if _, err := first.Write([]byte("G")); err != nil { // its request has begun
				t.Fatal(err)
			}
			busy := <-taken
			defer func() { _ = busy.Close() }()
			if _, err := busy.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if !l.Serving(busy) { // and is being answered
				t.Fatal("it has made room")
			}
			second := dial()
			defer func() { _ = second.Close() }()
			_ = second.SetDeadline(time.Now().Add(time.Minute))
			said, err := io.ReadAll(second)
			if err != nil || !strings.HasPrefix(string(said), of.want) || of.want == "" && len(said) > 0 {
				t.Errorf("%q, %v", said, err)
			}
		})
	}
}
