package bypass

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

const page = "deploy/test/bypass/measured.md"

func TestNoSpellingRunsTheEndpointUnsigned(t *testing.T) {
	table := kit.Read(t, filepath.Join(kit.Root(), page))
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			addr := s.start(t)
			if !ran(testkit.Post(t, addr, s.path, "{}")) {
				t.Fatalf("the set-up itself does not work: %v", testkit.Post(t, addr, s.path, "{}"))
			}
			hook := inFront(t, addr, s.path)
			if a := testkit.Post(t, hook, s.path, "{}", "X-Token: right"); !ran(a) {
				t.Fatalf("a signed delivery does not arrive: %v", a)
			}
			var laxities []string
			for _, spelling := range testkit.Spellings(s.path) {
				if !reaches(t, addr, spelling) {
					continue
				}
				laxities = append(laxities, spelling.Name)
				if reaches(t, hook, spelling) {
					t.Errorf("%s runs the endpoint: %q", spelling.Name, spelling.Request)
				}
			}
			if row := fmt.Sprintf("| %s | `%s` | %s |\n", s.name, s.path,
				testkit.Laxities(laxities)); !strings.Contains(table, row) {
				t.Errorf("%s lacks the row that was measured\n%s", page, row)
			}
		})
	}
}

// ran reports whether the endpoint ran: it says so in a header, because an answer to HEAD has no
// body.
func ran(a *testkit.Answer) bool { return a.Header.Get("X-Ran") != "" }

// reaches sends a spelling. A server that hangs up has not run anything.
func reaches(t *testing.T, addr string, s testkit.Spelling) bool {
	t.Helper()
	c := testkit.Dial(t, addr)
	defer c.Close()
	c.Say(s.Request)
	method, _, _ := strings.Cut(s.Request, " ")
	a, err := c.TryAnswer(method)
	return err == nil && ran(a)
}

// inFront is the address of a Hooklock that checks a token on path, and passes on what no route
// takes.
func inFront(t *testing.T, upstream, path string) string {
	t.Helper()
	return testkit.Serve(t, hooklockProgram, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
etcd: {request_timeout: 10s}
upstream: http://%s
unmatched: pass
routes:
  - {name: hook, path: %s, verify: {scheme: token, header: X-Token, secret_env: S}}
`, t.TempDir(), upstream, path), "S=right").Addr
}

// await waits until somebody listens at addr.
func await(t *testing.T, p *testkit.Process, addr string) string {
	t.Helper()
	testkit.Until(t, addr+" answers", func() bool {
		select {
		case <-p.Done():
			t.Fatalf("it has ended:\n%s%s", p.Stdout.String(), p.Stderr.String())
		default:
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	return addr
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
