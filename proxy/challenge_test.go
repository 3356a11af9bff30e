package proxy

import (
	"testing"

	"hooklock/proxy/wire"
)

func TestOnlyARequestForCredentialsThatWereNotBroughtIsAChallenge(t *testing.T) {
	digest := wire.Field{Name: []byte("www-AUTHENTICATE"), Value: []byte(`Digest realm="a", nonce="b"`)}
	stale := wire.Field{Name: []byte("WWW-Authenticate"), Value: []byte(`Digest realm="a", nonce="b", Stale = "TRUE"`)}
	basic := wire.Field{Name: []byte("WWW-Authenticate"), Value: []byte(`Basic realm="a"`)}
	for name, c := range map[string]struct {
		lines  string // of the request
		status int
		fields []wire.Field
		want   bool
	}{
		"no credentials":                     {"", 401, []wire.Field{digest}, true},
		"for Basic, too":                     {"", 401, []wire.Field{basic}, true},
		"credentials that are refused":       {"authorization: Digest x\r\n", 401, []wire.Field{digest}, false},
		"credentials for an old challenge":   {"Authorization: Digest x\r\n", 401, []wire.Field{stale}, true},
		"the second of two":                  {"Authorization: Digest x\r\n", 401, []wire.Field{basic, stale}, true},
		"a 401 that names no way":            {"", 401, nil, false},
		"another status with such a header":  {"", 403, []wire.Field{digest}, false},
		"credentials for a proxy are others": {"Proxy-Authorization: Basic x\r\n", 401, []wire.Field{digest}, true},
	} {
		var q request
		if bad := q.parseRaw([]byte("POST / HTTP/1.1\r\nHost: a\r\n"+c.lines+"\r\n"), 4096); bad != nil {
			t.Fatal(bad)
		}
		if got := isChallenge(&q, &wire.Answer{Status: c.status, Fields: c.fields}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
