package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// A wrong secret is found out: when, from where, what was wrong, and of which event, though the
// process that refused it is gone.
func TestABadSignatureIsFoundByItsEventIDAfterARestart(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
upstream: %s
routes:
  - name: signed
    path: "/signed/{w}"
    workflow: "signed/{path.w}"
    event_id: "{body.id}"
    verify: {scheme: hmac, header: X-Signature, secret_env: SIGNING_SECRET}
`, t.TempDir(), up.URL)
	secret := "SIGNING_SECRET=" + planted + strings.Repeat("0", 16)
	h := own(t, config, secret)
	for n := range 30 {
		a := testkit.Post(t, h.Addr, "/signed/w", fmt.Sprintf(`{"id":"evt_%d","card":%q}`, n, planted),
			"X-Signature: "+strings.Repeat("ab", 32))
		if a.Status != 401 {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
	}
	if a := testkit.Post(t, h.Addr, "/signed/w", `{"id":"evt_unsigned"}`); a.Status != 401 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	if fault := stopped(t, h.Process); fault != "" {
		t.Fatal(fault)
	}
	again := own(t, config, secret)
	list := cli(t, again, "signatures", "--route", "signed", "-o", "csv")
	if !strings.HasPrefix(list, "time,route,from,reason,part,event,sender_got,more,trace,detail") ||
		strings.Contains(list, planted) || strings.Contains(list, "abab") {
		t.Fatalf("the list is\n%s", list)
	}
	sum := 0
	for _, line := range strings.Split(strings.TrimSpace(list), "\n")[1:] {
		more, _ := strconv.Atoi(strings.Split(line, ",")[7])
		sum += 1 + more
	}
	if sum != 31 {
		t.Errorf("it stands for %d deliveries:\n%s", sum, list)
	}
	if !regexp.MustCompile(`(?m)^\S+,signed,127\.0\.0\.1,mismatch,X-Signature,evt_0,401,`).MatchString(list) {
		t.Errorf("evt_0 is not in\n%s", list)
	}
	said := cli(t, again, "show", "evt_3")
	for _, want := range []string{"evt_3 never ran: what came with this ID had no valid signature", "mismatch",
		"127.0.0.1"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if page := testkit.Exchange(t, again.Admin,
		"GET /page/find?text=evt_3 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); !strings.Contains(
		string(page.Body), "Came with a bad signature") {
		t.Errorf("the page says %s", page.Body)
	}
	// The event itself comes: what had said its ID before is still told.
	body := `{"id":"evt_4"}`
	mac := hmac.New(sha256.New, []byte(strings.TrimPrefix(secret, "SIGNING_SECRET=")))
	mac.Write([]byte(body))
	if a := testkit.Post(t, again.Addr, "/signed/w", body,
		"X-Signature: "+hex.EncodeToString(mac.Sum(nil))); a.Status != 200 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	said = cli(t, again, "show", "evt_4")
	for _, want := range []string{
		"The service answered 200", "1 delivery with this ID had no valid signature", "mismatch"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	id := regexp.MustCompile(`exec_[a-z2-7]{32}`).FindString(said)
	if page := testkit.Exchange(t, again.Admin, "GET /page/story?id="+id+
		" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); !strings.Contains(
		string(page.Body), "Came with a bad signature") {
		t.Errorf("the page says %s", page.Body)
	}
}
