package front

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// proxy is a program that stands in front, with the file that deploy/ has for it.
type proxy struct {
	name string
	file string
	// start writes the configuration into dir and says how to run it.
	start func(t *testing.T, p *proxy, dir, listen, backend string) testkit.Command
	// keepsSpelling says that header names reach Hooklock as the sender wrote them. HAProxy and Caddy have spellings of their own.
	keepsSpelling bool
	// exchange are pairs of texts: what a test changes in the file.
	exchange []string
}

var proxies = []*proxy{
	{name: "nginx", file: "nginx/webhooks.conf", start: startNginx, keepsSpelling: true},
	{name: "haproxy", file: "haproxy/haproxy.cfg", start: startHAProxy},
	{name: "caddy", file: "caddy/Caddyfile", start: startCaddy},
}

// inFront runs a test behind each proxy that is installed.
func inFront(t *testing.T, test func(t *testing.T, p *proxy)) {
	t.Helper()
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(p.name); err != nil {
				t.Skipf("%s is not installed: deploy/%s is not run (apt-get install %s)", p.name, p.file, p.name)
			}
			test(t, p)
		})
	}
}

// of starts p in front of backend and returns where it listens.
func (p *proxy) of(t *testing.T, backend string) string {
	t.Helper()
	dir, listen := t.TempDir(), testkit.FreePort(t)
	c := p.start(t, p, dir, listen, backend)
	program, err := exec.LookPath(c.Program)
	if err != nil {
		t.Fatal(err)
	}
	c.Program, c.Dir = program, dir
	c.Env = append(c.Env, "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	running := testkit.Start(t, c)
	client := &http.Client{Timeout: testkit.Patience}
	defer client.CloseIdleConnections()
	testkit.Until(t, p.name+" listens", func() bool {
		select {
		case <-running.Done():
			t.Fatalf("%s ended: %s%s", p.name, running.Stderr, running.Stdout)
		default:
		}
		res, err := client.Get("http://" + listen + "/is-it-there")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
	return listen
}

// shipped is the file in deploy/, with each of the pairs of texts exchanged: it has to be there exactly once.
func (p *proxy) shipped(t *testing.T, exchange ...string) string {
	t.Helper()
	text, err := os.ReadFile(kit.Deploy(p.file))
	if err != nil {
		t.Fatal(err)
	}
	s := string(text)
	exchange = slices.Concat(exchange, p.exchange)
	for i := 0; i < len(exchange); i += 2 {
		if n := strings.Count(s, exchange[i]); n != 1 {
			t.Fatalf("%s has %q %d times, want once", p.file, exchange[i], n)
		}
		s = strings.Replace(s, exchange[i], exchange[i+1], 1)
	}
	return s
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startNginx includes the file where its first lines say that it belongs, with the upstream that they show. The buffer is small, so that
// larger bodies take the way over the disk.
func startNginx(t *testing.T, p *proxy, dir, listen, backend string) testkit.Command {
	t.Helper()
	shipped := p.shipped(t)
	var upstream string
	for line := range strings.Lines(shipped) {
		if rest, ok := strings.CutPrefix(line, "#   upstream hooklock"); ok {
			upstream = "upstream hooklock" + strings.Replace(rest, "127.0.0.1:8080", backend, 1)
		}
	}
	if !strings.Contains(upstream, backend) {
		t.Fatalf("%s shows no upstream block", p.file)
	}
	included := write(t, filepath.Join(dir, "webhooks.conf"), shipped)
	path := write(t, filepath.Join(dir, "nginx.conf"), strings.NewReplacer("DIR", dir, "LISTEN", listen, "UPSTREAM", upstream, "INCLUDED", included).Replace(`
daemon off; master_process off; worker_processes 1; pid DIR/nginx.pid; error_log stderr;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  client_body_buffer_size 1k;
  UPSTREAM
  server { listen LISTEN; include INCLUDED; }
}
`))
	return testkit.Command{Program: "nginx", Args: []string{"-p", dir, "-c", path, "-e", "stderr"}}
}

func startHAProxy(t *testing.T, p *proxy, dir, listen, backend string) testkit.Command {
	t.Helper()
	path := write(t, filepath.Join(dir, "haproxy.cfg"), p.shipped(t, "bind :80\n", "bind "+listen+"\n", "server hooklock 127.0.0.1:8080", "server hooklock "+backend))
	return testkit.Command{Program: "haproxy", Args: []string{"-db", "-f", path}}
}

func startCaddy(t *testing.T, p *proxy, dir, listen, backend string) testkit.Command {
	t.Helper()
	_, port, _ := strings.Cut(listen, ":")
	path := write(t, filepath.Join(dir, "Caddyfile"), "{\n\tadmin off\n\tauto_https off\n}\n"+
		p.shipped(t, "\nhooks.example.com {", "\nhttp://:"+port+" {\n\tbind 127.0.0.1", "reverse_proxy 127.0.0.1:8080", "reverse_proxy "+backend))
	return testkit.Command{Program: "caddy", Args: []string{"run", "--config", path, "--adapter", "caddyfile"}}
}
