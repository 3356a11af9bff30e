package front

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hooklock/test/testkit"
)

// stage is a service, a Hooklock in front of it, and a proxy in front of both.
type stage struct {
	up    *testkit.Upstream
	hook  *testkit.Hooklock
	front string // where the proxy listens
	dir   string // where the secrets are

	mu   sync.Mutex
	acts map[string]testkit.Handler
}

// presets are senders whose samples are signed with a shared secret.
var presets = []string{"stripe", "github", "gitlab", "bitbucket", "shopify", "slack", "square", "adyen", "mailgun",
	"hubspot", "zoom", "jira", "linear", "standard-webhooks"}

// secret is made up. It is hex, as Adyen wants it, and base64 as well, as Standard Webhooks do.
const secret = "00112233445566778899aabbccddeeff"

// newStage sets the stage; changes say how else the proxy is to stand.
func newStage(t *testing.T, p *proxy, changes ...func(*setup)) *stage {
	t.Helper()
	s := &stage{acts: map[string]testkit.Handler{}, dir: t.TempDir()}
	s.up = testkit.NewUpstream(t, s.act)
	var routes strings.Builder
	for _, preset := range presets {
		path := filepath.Join(s.dir, preset)
		if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		public := ""
		if preset == "square" || preset == "hubspot" {
			public = ", public_url: https://hooks.example.com"
		}
		fmt.Fprintf(&routes, "  - {name: %[1]s, path: /%[1]s, preset: %[1]s, verify: {secret_file: %[2]q%[3]s}}\n",
			preset, path, public)
	}
	s.hook = testkit.Serve(t, hooklockProgram, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
etcd: {request_timeout: 10s}
upstream: %s
routes:
  - {name: plain, match: {path: "/plain/{w}", methods: [POST, PUT]}, workflow: "plain/{path.w}", lock: {release_delay: 0s}}
%s`, t.TempDir(), s.up.URL, &routes))
	as := &setup{backends: []string{s.hook.Addr}}
	for _, change := range changes {
		change(as)
	}
	s.front = p.as(t, as)
	return s
}

// on says what the service does with requests for path.
func (s *stage) on(path string, handle testkit.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts[path] = handle
}

func (s *stage) act(r *testkit.Received) string {
	path, _, _ := strings.Cut(r.Target, "?")
	s.mu.Lock()
	handle := s.acts[path]
	s.mu.Unlock()
	if handle == nil {
		return testkit.OK("done")
	}
	return handle(r)
}

// held is work that the service does not end before the test says so.
type held struct {
	came   chan *testkit.Received
	answer chan string
}

func newHeld() *held { return &held{came: make(chan *testkit.Received, 4), answer: make(chan string)} }

func (h *held) handle(r *testkit.Received) string {
	h.came <- r
	select {
	case a := <-h.answer:
		return a
	case <-r.Context.Done():
		return ""
	}
}
