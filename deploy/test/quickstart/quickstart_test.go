package quickstart

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

const (
	firstRoute = "docs/first-route.md"
	services   = "docs/quickstart-php-java-rails.md"
)

var hooklockProgram string

func TestMain(m *testing.M) {
	testkit.Main(m, func(dir string) (err error) {
		hooklockProgram, err = kit.BuildHooklock(dir)
		return err
	})
}

// place is a folder with what the pages tell the reader to write, and the addresses that stand for
// theirs.
type place struct {
	dir              string
	public, door, up string // what the pages call :80, :8080 and :8081
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return &place{dir: t.TempDir(), public: testkit.FreePort(t), door: testkit.FreePort(t), up: testkit.FreePort(t)}
}

func (p *place) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// here returns text of a page with the addresses and paths of this place.
func (p *place) here(text string) string {
	return strings.NewReplacer("127.0.0.1:8080", p.door, "127.0.0.1:8081", p.up, "unix:///run/shop/puma.sock",
		"unix://"+p.dir+"/puma.sock", "bin/hooklock", hooklockProgram,
		"whsec_…", "whsec_made_up").Replace(text)
}

// shell runs lines of a page in a shell.
func (p *place) shell(t *testing.T, lines string) string {
	t.Helper()
	c := exec.Command("sh", "-c", p.here(lines))
	c.Dir = p.dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	return string(out)
}

// serve starts Hooklock with the file that the reader has written.
func (p *place) serve(t *testing.T) *testkit.Process {
	t.Helper()
	h := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: []string{"serve", "--config", "shop.yaml"},
		Dir: p.dir, Env: []string{"HOOKLOCK__LISTEN=" + p.door, "HOOKLOCK__ADMIN__LISTEN=127.0.0.1:0"}})
	h.AwaitLine(t, h.Stderr, `"msg":"session.opened"`)
	h.AwaitLine(t, h.Stderr, `"msg":"started"`)
	return h
}

// awaitOpen waits until somebody listens.
func awaitOpen(t *testing.T, p *testkit.Process, network, addr string) {
	t.Helper()
	testkit.Until(t, addr+" is open", func() bool {
		select {
		case <-p.Done():
			t.Fatalf("it ended: %s%s", p.Stdout, p.Stderr)
		default:
		}
		c, err := net.Dial(network, addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// checked writes the secret, and runs the checks of step 3.
func (p *place) checked(t *testing.T) string {
	t.Helper()
	return p.shell(t, kit.Fenced(t, firstRoute, "Write the secret", "")+
		"true # explain fails for a delivery that is refused")
}

// seen checks step 5: the first sample runs, the second is replayed.
func (p *place) seen(t *testing.T) {
	t.Helper()
	out := p.shell(t, kit.Fenced(t, firstRoute, "## 5. See it work", ""))
	if strings.Count(out, "Hooklock-Decision: executed") != 1 ||
		strings.Count(out, "Hooklock-Decision: replayed") != 1 || strings.Count(out, "Idempotent-Replayed: true") != 1 {
		t.Errorf("%s", out)
	}
}

func TestTheCommandsOfTheFirstRouteDoWhatThePageSays(t *testing.T) {
	p := newPlace(t)
	service := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	p.up = service.Addr
	p.write(t, "shop.yaml", p.here(kit.Fenced(t, firstRoute, "## 2.", "yaml")))
	out := p.checked(t)
	for _, want := range []string{"shop.yaml: valid", "stripe/acme", "evt_1", "signature_invalid"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	p.serve(t)
	p.seen(t)
	if n := len(service.Received("/hooks/stripe/acme")); n != 1 {
		t.Errorf("%d requests reached the service", n)
	}
}

func TestTheREADMELeadsFromTwoLinesToARoute(t *testing.T) {
	p := newPlace(t)
	service := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.Contains(r.Body, `"try":1`) {
			return testkit.Reply(503, "busy")
		}
		return testkit.OK("done")
	})
	p.up = service.Addr
	file := kit.Fenced(t, "README.md", "## In front of your service", "yaml")
	if strings.Count(file, "\n") != 2 {
		t.Errorf("%q has not two lines", file)
	}
	p.write(t, "shop.yaml", p.here(file))
	if first := kit.Fenced(t, "README.md", file+"```\n",
		""); first != "make build\nbin/hooklock serve --config shop.yaml\n" {
		t.Fatalf("the README begins with %q", first)
	}
	admin := testkit.FreePort(t)
	h := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: []string{"serve", "--config", "shop.yaml"},
		Dir: p.dir, Env: []string{"HOOKLOCK__ADMIN__LISTEN=" + admin}})
	h.AwaitLine(t, h.Stderr, `"msg":"started"`)
	for event := range 12 {
		for try := range 2 {
			testkit.Post(t, p.door, "/hooks/shop",
				fmt.Sprintf(`{"event_id":"e%d","customer":"c%d","try":%d,"sum":%d}`, event, event%3, try+1, event))
		}
	}
	suggest, validate, _ := strings.Cut(kit.Fenced(t, "README.md", "ask which routes fit", ""), "\n")
	routes := p.shell(t, "HOOKLOCK_ADMIN="+admin+" "+suggest)
	p.write(t, "shop.yaml", p.here(file)+routes)
	if out := p.shell(t, validate); !strings.Contains(out, "shop.yaml: valid") {
		t.Errorf("%s", out)
	}
	h.AwaitLine(t, h.Stderr, `"msg":"config.reloaded"`)
	for i, want := range []string{"executed", "replayed"} {
		body := fmt.Sprintf(`{"event_id":"e99","customer":"c1","try":%d,"sum":9}`, i+2)
		if a := testkit.Post(t, p.door, "/hooks/shop", body); a.Decision() != want {
			t.Errorf("%v, want %s\n%s", a, want, routes)
		}
	}
}

func TestBehindItPHPSeesADeliveryOnceAndItsSendersAddress(t *testing.T) {
	fpm, _ := filepath.Glob("/usr/sbin/php-fpm*")
	nginx, err := exec.LookPath("nginx")
	if len(fpm) == 0 || err != nil {
		t.Skip("PHP-FPM or nginx is not installed: the PHP part of " + services +
			" is not run (apt-get install php-fpm nginx-light)")
	}
	p := newPlace(t)
	p.write(t, "index.php",
		`<?php file_put_contents(__DIR__."/runs", "run\n", FILE_APPEND); echo $_SERVER["REMOTE_ADDR"]," ",$_SERVER["HTTP_HOOKLOCK_WORKFLOW"]," ",$_SERVER["HTTPS"] ?? "plain",":",$_SERVER["SERVER_PORT"]," ",strlen(file_get_contents("php://input"));`)
	user, group := "", ""
	if os.Geteuid() == 0 { // FPM wants one, and takes root only when it is told to
		user, group = "user = root\n", "group = root\n"
	}
	socket := filepath.Join(p.dir, "fpm.sock")
	pool := p.write(t, "fpm.conf", "[global]\nerror_log = /dev/stderr\ndaemonize = no\n[www]\n"+user+group+"listen = "+
		socket+"\npm = static\npm.max_children = 2\n")
	php := testkit.Start(t, testkit.Command{Program: fpm[len(fpm)-1], Args: []string{"-R", "-F", "-y", pool}})
	t.Cleanup(func() { // its children would outlive a SIGKILL
		php.Signal(t, syscall.SIGTERM)
		<-php.Done()
	})
	awaitOpen(t, php, "unix", socket)

	shipped := kit.Read(t, kit.Deploy("nginx/webhooks.conf"))
	_, upstream, _ := strings.Cut(shipped, "#   upstream")
	upstream, _, _ = strings.Cut(upstream, "\n")
	shown := strings.NewReplacer("listen 80;", "listen "+p.public+";", "/etc/nginx/webhooks.conf",
		p.write(t, "webhooks.conf", strings.ReplaceAll(shipped, "192.0.2.10", "127.0.0.7")),
		"/srv/shop/public", p.dir, "unix:/run/php/php-fpm.sock", "unix:"+socket, "include fastcgi_params",
		"include "+p.write(t, "fastcgi_params", fastcgi)).Replace(p.here(kit.Fenced(t, services, "## PHP", "nginx")))
	conf := p.write(t, "nginx.conf",
		strings.NewReplacer("DIR", p.dir).Replace(
			`daemon off; master_process off; pid DIR/nginx.pid; error_log stderr; events {} http { access_log off;
client_body_temp_path DIR/a; proxy_temp_path DIR/b; fastcgi_temp_path DIR/c; uwsgi_temp_path DIR/d; scgi_temp_path DIR/e;
upstream `)+p.here(upstream)+"\n"+shown+"}\n")
	web := testkit.Start(t, testkit.Command{Program: nginx, Args: []string{"-p", p.dir, "-c", conf, "-e", "stderr"}})
	awaitOpen(t, web, "tcp", p.public)

	p.write(t, "shop.yaml", "unmatched: pass\n"+p.here(kit.Fenced(t, firstRoute, "## 2.", "yaml")))
	p.checked(t)
	p.serve(t)
	p.seen(t)
	runs, err := os.ReadFile(filepath.Join(p.dir, "runs"))
	if err != nil || string(runs) != "run\n" {
		t.Errorf("PHP ran %q, %v", runs, err)
	}
	for _, c := range []struct{ from, says, want string }{
		// nobody that the page names: what it says of itself is not believed
		{"127.0.0.9", "https", "127.0.0.9  plain:80 5"},
		{"127.0.0.7", "https", " on:443 5"}, // the load balancer
		{"127.0.0.7", "http", " plain:80 5"},
	} {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}
		nc, err := from.Dial("tcp", p.public)
		if err != nil {
			t.Fatal(err)
		}
		sender := testkit.NewConn(t, nc)
		sender.Say(testkit.Request("/unmatched", "12345", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: "+c.says))
		if a := sender.Answer("POST"); !strings.HasSuffix(string(a.Body), c.want) ||
			!strings.HasPrefix(string(a.Body), c.from) {
			t.Errorf("from %s: PHP says %q, want %q", c.from, a.Body, c.want)
		}
	}
}

// fastcgi is what Debian's /etc/nginx/fastcgi_params has of what this test looks at.
const fastcgi = `
fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param REQUEST_URI $request_uri; fastcgi_param REMOTE_ADDR $remote_addr; fastcgi_param SERVER_PORT $server_port; fastcgi_param HTTPS $https if_not_empty;
fastcgi_param SERVER_PROTOCOL $server_protocol; fastcgi_param GATEWAY_INTERFACE CGI/1.1;
`

func TestBehindItPumaSeesADeliveryOnce(t *testing.T) {
	puma, err := exec.LookPath("puma")
	if err != nil {
		t.Skip("Puma is not installed: the Rails part of " + services + " is not run (apt-get install puma)")
	}
	p := newPlace(t)
	p.write(t, "config.ru",
		`n = 0; run ->(env) { n += 1; [200, {}, ["#{n} #{env["HTTP_X_FORWARDED_FOR"]} #{env["HTTP_HOOKLOCK_WORKFLOW"]}"]] }`)
	config := p.write(t, "puma.rb", p.here(kit.Fenced(t, services, "## Rails", "ruby")))
	server := testkit.Start(t, testkit.Command{Program: puma,
		Args: []string{"-C", config, "-e", "production", filepath.Join(p.dir, "config.ru")}, Dir: p.dir})
	awaitOpen(t, server, "unix", filepath.Join(p.dir, "puma.sock"))
	p.write(t, "shop.yaml", p.here(kit.Fenced(t, services, "and in the configuration", "yaml")))
	p.serve(t)
	for _, want := range []string{"executed", "replayed"} {
		a := testkit.Post(t, p.door, "/hooks/orders", "{}", "Idempotency-Key: 1")
		if a.Status != 200 || a.Decision() != want || string(a.Body) != "1 127.0.0.1 orders" {
			t.Errorf("%v", a)
		}
	}
}
