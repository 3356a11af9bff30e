package doctor

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/proxy/wiretest"
)

// plain is an upstream that answers each request with answer. It takes an empty line as it is told,
// and reads bodies or not.
func plain(t *testing.T, answer string, reads bool, refusal string) *wiretest.Upstream {
	return wiretest.Serve(t, func(c *wiretest.Conn) {
		br := bufio.NewReader(c)
		for {
			line, err := br.ReadString('\n')
			switch {
			case err != nil:
				return
			case line == "\r\n" && refusal == "":
				continue
			case !strings.HasPrefix(line, "POST /there "):
				_ = c.Say(refusal)
				return
			}
			for line != "\r\n" {
				if line, err = br.ReadString('\n'); err != nil {
					return
				}
			}
			if reads {
				_, _ = br.Discard(len(`{"hooklock":"doctor"}`))
			}
			if c.Say(answer) != nil {
				return
			}
		}
	})
}

func TestDoctorFindsOutWhetherAServiceReadsBodies(t *testing.T) {
	const ok, bad = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
	for _, c := range []struct {
		name, answer string
		reads        bool
		refusal      string
		setting      config.Reuse
		result       diagnose.Result
		says         string
	}{
		{"it reads them", ok, true, "", config.ReuseAuto, diagnose.OK,
			"so its handler reads bodies; auto keeps none of its connections, nothing is known of a service that does not say what it is; reuse_after_body: true is right if"},
		{"it reads them and is named", "HTTP/1.1 200 OK\r\nServer: gunicorn\r\nContent-Length: 0\r\n\r\n", true, "",
			config.ReuseAuto, diagnose.OK, `of a service that says "gunicorn"`},
		{"it reads them and is known", "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 0\r\n\r\n", true, "",
			config.ReuseAuto, diagnose.OK, "auto keeps its connections, nginx drops"},
		{"it refuses empty lines", ok, true, bad, config.ReuseAuto, diagnose.OK,
			"with empty lines, which deliveries do not have, it answered 200 to the first and 400 to the second; auto keeps none"},
		{"it refuses them and is trusted", ok, true, bad, config.ReuseAlways, diagnose.OK,
			"true is right if each handler"},
		{"it leaves them", ok, false, bad, config.ReuseAuto, diagnose.OK,
			"answered 200 to the first and 400 to the second: it does not read bodies"},
		{"it leaves them and is trusted", ok, false, bad, config.ReuseAlways, diagnose.Failed,
			"say upstream.reuse_after_body: auto"},
		{"it leaves them and closes", ok, false, "", config.ReuseAuto, diagnose.OK,
			"answered 200 to the first and failed at the second"},
		{"it closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", true, "", config.ReuseAuto,
			diagnose.OK, "closes each connection after its answer"},
		{"it has no such path", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true, "", config.ReuseAuto,
			diagnose.Warning, "it answers 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			up := plain(t, c.answer, c.reads, c.refusal)
			cfg := &config.Config{Upstream: config.Upstream{URL: "http://" + up.Addr, ConnectTimeout: 10 * time.Second,
				ReuseAfterBody: c.setting}}
			f := trialFinding(t.Context(), cfg, "/there")
			if f.Result != c.result || !strings.Contains(f.Found+"; "+f.Advice, c.says) {
				t.Errorf("got %+v", f)
			}
			if up.Conns() > 2 {
				t.Errorf("%d connections", up.Conns())
			}
		})
	}
	if f := refusesLinesBehind(t, 2); !strings.Contains(f.Found,
		`so its handler reads bodies; with empty lines, which deliveries do not have, it sent "HTTP/1.1 400 Bad Request" at empty line 2 behind them`) {
		t.Errorf("%+v", f)
	}
	for _, path := range []string{"there", "//there", "http://a/b", "/a b"} {
		if f := trialFinding(t.Context(), &config.Config{}, path); f.Result != diagnose.Failed ||
			!strings.Contains(f.Found, "is no path") {
			t.Errorf("%q: %+v", path, f)
		}
	}
}

// refusesLinesBehind is what doctor finds of a service that refuses the nth empty line behind its
// second answer.
func refusesLinesBehind(t *testing.T, n int) diagnose.Finding {
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for range 2 {
			if _, err := c.ReadRequest(); err != nil || c.Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") != nil {
				return
			}
		}
		if _, err := io.ReadFull(c, make([]byte, 2*n)); err == nil {
			_ = c.Say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		}
	})
	cfg := &config.Config{Upstream: config.Upstream{URL: "http://" + up.Addr, ConnectTimeout: 10 * time.Second,
		ReuseAfterBody: config.ReuseAuto}}
	return trialFinding(t.Context(), cfg, "/there")
}
