package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hooklock/test/testkit"
)

// chat is a receiver of messages, as a chat has it.
type chat struct {
	*httptest.Server
	mu     sync.Mutex
	texts  []string
	status int // that it answers
}

const chatSecret = "T0B0s3cr3tOfTheChat"

func newChat(t *testing.T) *chat {
	t.Helper()
	c := &chat{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var message struct{ Text string }
		if err != nil || json.Unmarshal(body, &message) != nil || r.URL.Path != "/services/"+chatSecret {
			t.Errorf("%s %s %v", r.URL, body, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		w.WriteHeader(c.status)
		if c.status == http.StatusOK {
			c.texts = append(c.texts, message.Text)
			_, _ = io.WriteString(w, "ok")
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// count is how many lines of all messages have that text.
func (c *chat) count(text string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.texts {
		n += strings.Count(one, text)
	}
	return n
}

// settings is the part of a configuration that names the receiver.
func (c *chat) settings(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chat.url")
	write(t, file, c.URL+"/services/"+chatSecret+"\n")
	return "notify: {url_file: " + file + "}\n"
}

func TestPeopleAreToldOnceThoughTheReplicaThatTellsIsKilled(t *testing.T) {
	t.Parallel()
	c := newChat(t)
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.Reply(500, "database is locked") })
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {url: %q}
etcd: {endpoints: [%q], prefix: %s, session_ttl: 6s, request_timeout: 5s}
%sroutes:
  - {name: one, path: "/one/{x}", workflow: "one/{path.x}"}
  - {name: two, path: "/two/{x}", workflow: "two/{path.x}"}
`, up.URL, shared.etcd.Endpoint, ownPrefix(), c.settings(t))
	a := testkit.Serve(t, hooklockProgram, config)
	fail := func(h *testkit.Hooklock, route string) {
		for i := range 3 {
			testkit.Post(t, h.Addr, fmt.Sprintf("/%s/%d", route, i), "{}", key(fmt.Sprint(i)))
		}
	}
	fail(a, "one")
	testkit.Until(t, "it is told", func() bool { return c.count("New, urgent: one fails now: 3 of 3") == 1 })
	b := own(t, config)
	fail(b, "one")
	a.Kill()
	<-a.Done()
	fail(b, "two")
	testkit.Until(t, "the other replica tells", func() bool {
		return c.count("New, urgent: two fails now: 3 of 3") == 1
	})
	if n := c.count("one fails now"); n != 1 {
		t.Errorf("told %d times: %q", n, c.texts)
	}
	if c.count("database is locked") != 0 {
		t.Errorf("what the service said is told: %q", c.texts)
	}
	if strings.Contains(a.Stderr.String()+b.Stderr.String(), chatSecret) {
		t.Error("the URL is in the log")
	}
}

func TestATestMessageShowsWhatTheReceiverAnswers(t *testing.T) {
	t.Parallel()
	c := newChat(t)
	h := own(t, bare("http://127.0.0.1:1", c.settings(t)+"routes: [{name: one, path: /one}]\n"))
	if out := cli(t, h, "notify", "test"); out != "the receiver took the message: 200 ok\n" {
		t.Errorf("%q", out)
	}
	if n := c.count("this is a test"); n != 1 {
		t.Errorf("%d messages: %q", n, c.texts)
	}
	c.mu.Lock()
	c.status = http.StatusGone
	c.mu.Unlock()
	cmd := exec.CommandContext(t.Context(), hooklockProgram, "notify", "test", "--admin", "http://"+h.Admin)
	cmd.Dir = filepath.Dir(h.Config)
	said, _ := cmd.CombinedOutput()
	if out := string(said); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out, "the receiver answered 410") ||
		strings.Contains(out, chatSecret) {
		t.Errorf("%q", out)
	}
	if audit := cli(t, h, "audit", "list", "--what", "notify"); !strings.Contains(audit, "the receiver answered 410") ||
		strings.Contains(audit, chatSecret) {
		t.Errorf("the audit: %s", audit)
	}
}
