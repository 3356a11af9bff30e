package front

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// proxy is a program that stands in front, with the file that deploy/ has for it, and the page of
// docs/ingress with what is to be changed in it.
type proxy struct {
	name     string
	file     string
	language string // of the blocks in its page
	// program is its path; where it is not installed the test is skipped.
	program func(t *testing.T) string
	// start writes the configuration into dir and says how to run it.
	start func(t *testing.T, p *proxy, s *setup) testkit.Command
	// keepsSpelling says that header names reach Hooklock as the sender wrote them. The others have
	// spellings of their own.
	keepsSpelling bool
	// respells says that it spells paths anew, and asks for gzip where the sender did not.
	respells bool
	// exchange are pairs of texts: what a test changes in the file.
	exchange []string
}

var proxies = []*proxy{
	{name: "nginx", file: "nginx/webhooks.conf", language: "nginx", program: installed("nginx"), start: startNginx,
		keepsSpelling: true},
	{name: "haproxy", file: "haproxy/haproxy.cfg", language: "haproxy", program: installed("haproxy"),
		start: startHAProxy},
	{name: "apache", file: "apache/webhooks.conf", language: "apache", program: installed("apache2"),
		start: startApache, keepsSpelling: true},
	{name: "caddy", file: "caddy/Caddyfile", language: "caddy", program: installed("caddy"), start: startCaddy},
	{name: "traefik", file: "traefik/webhooks.yaml", language: "yaml", program: func(t *testing.T) string {
		return kit.Traefik(t)
	}, start: startTraefik, respells: true},
}

// setup is how a proxy is to stand.
type setup struct {
	dir, listen string
	backends    []string              // one, or two
	certificate *etcdtest.Certificate // nil: it speaks plain HTTP
	health      string                // the port of health.listen, where the page's lines ask for one
	balancer    string                // the address whose X-Forwarded-Proto it passes on; empty: nobody's
	running     *testkit.Process      // once it stands
}

func installed(program string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		path, err := exec.LookPath(program)
		if err != nil {
			t.Skipf("%s is not installed: nothing goes through it (apt-get install %s)", program,
				map[string]string{"apache2": "apache2-bin"}[program]+program)
		}
		return path
	}
}

// inFront runs a test behind each proxy that is installed.
func inFront(t *testing.T, test func(t *testing.T, p *proxy)) {
	t.Helper()
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.program(t)
			test(t, p)
		})
	}
}

// of starts p in front of one replica or two and returns where it listens.
func (p *proxy) of(t *testing.T, backends ...string) string {
	t.Helper()
	return p.as(t, &setup{backends: backends})
}

// as starts p and returns where it listens.
func (p *proxy) as(t *testing.T, s *setup) string {
	t.Helper()
	s.dir, s.listen = t.TempDir(), testkit.FreePort(t)
	program := p.program(t)
	c := p.start(t, p, s)
	c.Program, c.Dir = program, s.dir
	c.Env = append(c.Env, "HOME="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir)
	running := testkit.Start(t, c)
	s.running = running
	client, url := plainClient(), "http://"
	if s.certificate != nil {
		client, url = secureClient(), "https://"
	}
	defer client.CloseIdleConnections()
	testkit.Until(t, p.name+" listens", func() bool {
		select {
		case <-running.Done():
			t.Fatalf("%s ended: %s%s", p.name, running.Stderr, running.Stdout)
		default:
		}
		r, err := http.NewRequest(http.MethodGet, url+s.listen+"/is-it-there", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = site
		res, err := client.Do(r)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return err == nil && string(body) != "404 page not found\n" // Traefik's, before it has read its file
	})
	return s.listen
}

// site is the name that the pages give the public address.
const site = "hooks.example.com"

func plainClient() *http.Client { return &http.Client{Timeout: testkit.Patience} }

// secureClient speaks TLS and HTTP/2. What it is shown is not looked at: the tests do not ask who
// signs certificates.
func secureClient() *http.Client {
	return &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{
		ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: &tls.Config{ServerName: site, InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
}

// page is the block of p's page below a heading, with what it calls the two replicas, the balancer
// and the certificate as they are here.
func (p *proxy) page(t *testing.T, heading string, s *setup) string {
	t.Helper()
	text := kit.Fenced(t, "docs/ingress/"+p.name+".md", "## "+heading+"\n", p.language)
	pairs := []string{"10.0.0.5", s.balancer, "8078", s.health}
	for i, b := range s.backends {
		pairs = append(pairs, []string{"10.0.0.1:8080", "10.0.0.2:8080"}[i], b)
	}
	if s.certificate != nil {
		for _, dir := range []string{"/etc/ssl/", "/etc/caddy/", "/etc/traefik/", "/etc/haproxy/"} {
			pairs = append(pairs, dir+site+".pem", s.certificate.CertFile, dir+site+".key", s.certificate.KeyFile)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

const (
	replicas  = "Several replicas"
	encrypted = "TLS and HTTP/2"
	balanced  = "Behind a load balancer that ends TLS"
)

// shipped is the file in deploy/, with each of the pairs of texts exchanged: it has to be there
// exactly once.
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

// here are the pairs of texts that put the replicas and the balancer of a setup into the file: by
// the lines of the page, where there are two replicas or a balancer. The others are what the file
// says, whole lines.
func (p *proxy) here(t *testing.T, s *setup, replica, balancer string) []string {
	t.Helper()
	var pairs []string
	if len(s.backends) == 1 {
		pairs = append(pairs, replica, strings.Replace(replica, "127.0.0.1:8080", s.backends[0], 1))
	} else {
		pairs = append(pairs, replica, p.page(t, replicas, s))
	}
	if s.balancer != "" && balancer != "" {
		pairs = append(pairs, balancer, p.page(t, balanced, s))
	}
	return pairs
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startNginx puts together what the page shows, and the upstream block of the file's first lines.
// The buffer is small, so that larger bodies take the way over the disk.
func startNginx(t *testing.T, p *proxy, s *setup) testkit.Command {
	t.Helper()
	_, upstream, found := strings.Cut(p.shipped(t), "#   upstream hooklock")
	upstream, _, _ = strings.Cut(upstream, "\n")
	if !found {
		t.Fatalf("%s shows no upstream block", p.file)
	}
	upstream = "upstream hooklock" + strings.Replace(upstream, "127.0.0.1:8080", s.backends[0], 1)
	if len(s.backends) > 1 {
		upstream = p.page(t, replicas, s)
	}
	listen := "listen " + s.listen + ";"
	if s.certificate != nil {
		listen = strings.Replace(p.page(t, encrypted, s), "listen 443", "listen "+s.listen, 1)
	}
	var lines []string
	if s.balancer != "" {
		lines = []string{"if ($realip_remote_addr = 192.0.2.10) {\n", p.page(t, balanced, s)}
	}
	http := kit.Fenced(t, "docs/ingress/nginx.md", "# nginx\n", "nginx")
	_, rest, ok := strings.Cut(http, "server {")
	if !ok {
		t.Fatal("docs/ingress/nginx.md shows no server block")
	}
	http = strings.NewReplacer("DIR", s.dir, "UPSTREAM", upstream).Replace(`http {
  access_log off;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  client_body_buffer_size 1k;
  UPSTREAM
  server {`) + strings.NewReplacer("listen 80;", listen, "/etc/nginx/webhooks.conf", write(t, filepath.Join(s.dir, "webhooks.conf"), p.shipped(t, lines...))).Replace(rest)
	path := write(t, filepath.Join(s.dir, "nginx.conf"), "daemon off; master_process off; worker_processes 1; pid "+
		s.dir+"/nginx.pid; error_log stderr;\nevents { worker_connections 128; }\n"+http)
	return testkit.Command{Args: []string{"-p", s.dir, "-c", path, "-e", "stderr"}}
}

func startHAProxy(t *testing.T, p *proxy, s *setup) testkit.Command {
	t.Helper()
	bind := "    bind " + s.listen + "\n"
	if s.certificate != nil { // it wants both in one file
		both := write(t, filepath.Join(s.dir, "both.pem"), kit.Read(t, s.certificate.CertFile)+
			kit.Read(t, s.certificate.KeyFile))
		bind = strings.NewReplacer("bind :443", "bind "+s.listen, s.certificate.CertFile,
			both).Replace(p.page(t, encrypted, s))
	}
	lines := append(p.here(t, s, "    server hooklock 127.0.0.1:8080 check inter 2s fastinter 500ms downinter 500ms\n",
		"    acl balancer src 192.0.2.10\n"), "    bind :80\n", bind)
	return testkit.Command{Args: []string{"-db", "-f",
		write(t, filepath.Join(s.dir, "haproxy.cfg"), p.shipped(t, lines...))}}
}

func startCaddy(t *testing.T, p *proxy, s *setup) testkit.Command {
	t.Helper()
	_, port, _ := strings.Cut(s.listen, ":")
	at := "http://:" + port + " {\n\tbind 127.0.0.1\n"
	if s.certificate != nil {
		at = "https://" + site + ":" + port + " {\n\tbind 127.0.0.1\n" + p.page(t, encrypted, s)
	}
	lines := append(p.here(t, s, "\treverse_proxy 127.0.0.1:8080 {\n", "\t\ttrusted_proxies 192.0.2.10\n"),
		"\n"+site+" {\n", "\n"+at)
	path := write(t, filepath.Join(s.dir, "Caddyfile"), "{\n\tadmin off\n\tauto_https off\n}\n"+p.shipped(t, lines...))
	return testkit.Command{Args: []string{"run", "--config", path, "--adapter", "caddyfile"}}
}

// startApache loads the modules that the page names, from where Debian has them.
func startApache(t *testing.T, p *proxy, s *setup) testkit.Command {
	t.Helper()
	lines := append(p.here(t, s,
		"        BalancerMember \"http://127.0.0.1:8080\" retry=1 ttl=60 connectiontimeout=2\n",
		"    RequestHeader set X-Forwarded-Proto expr=%{REQUEST_SCHEME} \"expr=!(%{CONN_REMOTE_ADDR} -ipmatch '192.0.2.10')\"\n"), "<VirtualHost *:80>", "<VirtualHost "+s.listen+">")
	site := p.shipped(t, lines...)
	_, named, found := strings.Cut(site, "a2enmod ")
	named, _, _ = strings.Cut(named, "\n")
	if !found {
		t.Fatalf("%s names no modules", p.file)
	}
	modules := append(strings.Fields(named), "mpm_event", "authz_core")
	if s.certificate != nil {
		modules = append(modules, "ssl", "http2", "socache_shmcb")
		site = strings.Replace(site, "    ServerName ", p.page(t, encrypted, s)+"    ServerName ", 1)
	}
	var load strings.Builder
	for _, m := range modules {
		file := "/usr/lib/apache2/modules/mod_" + m + ".so"
		if _, err := os.Stat(file); err != nil {
			t.Skipf("Apache's modules are not where Debian has them: %v", err)
		}
		load.WriteString("LoadModule " + m + "_module " + file + "\n")
	}
	path := write(t, filepath.Join(s.dir, "apache.conf"),
		load.String()+strings.NewReplacer("DIR", s.dir, "LISTEN", s.listen).Replace(`
ServerRoot DIR
DefaultRuntimeDir DIR
PidFile DIR/apache.pid
Mutex file:DIR
ErrorLog /dev/stderr
ServerName localhost
Listen LISTEN
`)+site)
	return testkit.Command{Args: []string{"-f", path, "-X"}} // in one process: its children would outlive a SIGKILL
}

// startTraefik runs the command of the file's first lines.
func startTraefik(t *testing.T, p *proxy, s *setup) testkit.Command {
	t.Helper()
	text := p.shipped(t, p.here(t, s, "          - url: http://127.0.0.1:8080\n", "")...)
	if s.certificate == nil { // some tests name the address
		text = strings.Replace(text, "Host(`"+site+"`)", "PathPrefix(`/`)", 1)
	}
	_, line, found := strings.Cut(text, "#   traefik ")
	line, _, _ = strings.Cut(line, "\n")
	if !found {
		t.Fatalf("%s shows no command", p.file)
	}
	if s.certificate != nil {
		text = strings.Replace(text, "      entryPoints: [web]\n", "      entryPoints: [web]\n      tls: {}\n", 1) +
			p.page(t, encrypted, s)
	}
	line = strings.NewReplacer("address=:80", "address="+s.listen, "/etc/traefik/webhooks.yaml",
		write(t, filepath.Join(s.dir, "webhooks.yaml"), text)).Replace(line)
	args := append(strings.Fields(line), "--global.checkNewVersion=false", "--global.sendAnonymousUsage=false")
	if s.balancer != "" {
		args = append(args, strings.Fields(strings.ReplaceAll(kit.Fenced(t, "docs/ingress/traefik.md",
			"## "+balanced+"\n", ""), "10.0.0.5", s.balancer))...)
	}
	return testkit.Command{Args: args}
}
