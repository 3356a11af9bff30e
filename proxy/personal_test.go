package proxy

import (
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/proxy/wiretest"
)

// A duplicate may come from another connection, or from somebody who captured it: what was meant
// for the first sender alone is not for it.
func TestAReplayLeavesOutWhatWasMeantForTheFirstSender(t *testing.T) {
	etcd := etcdtest.Start(t)
	const personal = "Set-Cookie: session=secret\r\nset-cookie: b=c\r\nWWW-Authenticate: Basic\r\n"
	keeps := func(p *idem.Policy) { p.Keep.Add(200, 299) }
	up := &service{url: wiretest.Script(t, "HTTP/1.1 200 OK\r\n"+personal+"X-A: b\r\nContent-Length: 2\r\n\r\nok").Addr}
	a, b := newReplica(t, etcd, up, keeps), newReplica(t, etcd, up, keeps)
	request := "POST /hooks/w HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: 1\r\nContent-Length: 0\r\n\r\n"
	first := a.raw(t, request)
	for _, line := range strings.SplitAfter(personal, "\r\n") {
		if !strings.Contains(strings.ToLower(first), strings.ToLower(line)) {
			t.Errorf("the first sender does not get %q: %q", line, first)
		}
	}
	for name, r := range map[string]*replica{"the same process": a, "another process": b} {
		again := r.raw(t, request)
		if !strings.HasSuffix(again, "\r\n\r\nok") || !strings.Contains(again, "X-A: b\r\n") {
			t.Errorf("%s replays %q", name, again)
		}
		for _, theirs := range []string{"set-cookie", "www-authenticate", "secret"} {
			if strings.Contains(strings.ToLower(again), theirs) {
				t.Errorf("%s replays %s: %q", name, theirs, again)
			}
		}
	}
}
