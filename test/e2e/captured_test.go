package e2e

import (
	"encoding/hex"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// Whoever captured a signed delivery without an event ID can change what the signature leaves open.
// It stays the same event.
func TestACapturedDeliveryDoesNotRunAgainForWhatIsNotSigned(t *testing.T) {
	t.Parallel()
	const path, secret, body = "/captured", planted, `{"amount":100}`
	ran := make(chan string, 100)
	shared.on(t, path, func(r *testkit.Received) string {
		ran <- r.Method + " " + r.Target
		return testkit.OK("done")
	})
	h := own(t, bare(shared.up.URL, `
routes:
  - {name: body, match: {path: /captured, hosts: [body.example.com]}, workflow: body, verify: {scheme: hmac, header: X-Sig, secret_env: S}}
  - {name: target, match: {path: /captured, hosts: [target.example.com]}, workflow: target, verify: {scheme: hmac, header: X-Sig, secret_env: S, public_url: "https://t", content: "{method}{url}{body}"}}
`), "S="+secret)
	post := func(host, method, target, signed string) *testkit.Answer {
		request := testkit.RequestWith(method, target, body, "X-Sig: "+hex.EncodeToString(mac([]byte(secret), signed)))
		return testkit.Exchange(t, h.Addr, strings.Replace(request, "hooks.example.com", host, 1))
	}
	passed(t, post("body.example.com", "POST", path, body), 200, "done", "executed")
	for _, c := range [][3]string{{"body.example.com", "POST", path + "?x"}, {"body.example.com", "PUT", path},
		{"BODY.example.com.:80", "POST", path + "?again=1"}} {
		if a := post(c[0], c[1], c[2], body); a.Decision() != "replayed" {
			t.Errorf("%v: %v", c, a)
		}
	}
	if n := len(ran); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	// What is signed tells one event from another.
	for i, target := range []string{path + "?a", path + "?b"} {
		passed(t, post("target.example.com", "POST", target, "POSThttps://t"+target+body), 200, "done", "executed")
		if a := post("TARGET.example.com.", "POST", target, "POSThttps://t"+target+body); a.Decision() != "replayed" {
			t.Errorf("%d: %v", i, a)
		}
	}
}
