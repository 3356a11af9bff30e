package behind

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

// server is a known server. Below /reads/ it passes requests on to a backend that reads them, below
// /leaves/ it answers 200 and below /early/ an error, both without a look at the body, and below
// /refuses/ its application answers 400. Each answer has the request's target in X-Echo.
type server struct {
	name  string
	says  string // its Server field begins so
	early int    // the status below /early/
	start func(t *testing.T, listen, backend string) *log
}

var servers = []*server{
	{name: "nginx", says: "nginx/", early: 401, start: startNginx},
	{name: "apache prefork", says: "Apache/", early: 403, start: apache("mpm_prefork", "", 64)},
	{name: "apache event", says: "Apache/", early: 403, start: apache("mpm_event", "", 64)},
	{name: "apache prefork with PHP", says: "Apache/", early: 403, start: apache("mpm_prefork", "php", 64)},
}

// log is the access log of a server: a line for each request, "target status n", where n tells how
// many its connection had before.
type log struct{ path string }

func (l *log) lines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func installed(t *testing.T, program, pack string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed, so that its row of proxy/wire/known.go is not measured (apt-get install %s)",
			program, pack)
	}
	return path
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // its server may have given up root
		t.Fatal(err)
	}
	return path
}

// await waits until the program listens, and ends it with its children behind the test.
func await(t *testing.T, p *testkit.Process, listen string) {
	t.Helper()
	t.Cleanup(func() {
		select {
		case <-p.Done():
		default:
			p.Signal(t, syscall.SIGTERM)
			<-p.Done()
		}
	})
	testkit.Until(t, "it listens", func() bool {
		select {
		case <-p.Done():
			t.Fatalf("it ended: %s%s", p.Stderr, p.Stdout)
		default:
		}
		c, err := net.Dial("tcp", listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

func startNginx(t *testing.T, listen, backend string) *log {
	program, dir := installed(t, "nginx", "nginx-light"), t.TempDir()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	conf := strings.NewReplacer("DIR", dir, "LISTEN", listen, "BACKEND", backend, "USER", user).Replace(`
daemon off; master_process off; USER pid DIR/nginx.pid; error_log stderr;
events { worker_connections 256; }
http {
  log_format targets "$request_uri $status $connection_requests"; access_log DIR/access.log targets;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  client_max_body_size 8m;
  add_header X-Echo $request_uri always;
  server {
    listen LISTEN;
    location /reads/ { proxy_pass http://BACKEND; }
    location /refuses/ { proxy_pass http://BACKEND; }
    location /leaves/ { return 200 "left"; }
    location /early/ { return 401; }
  }
}`)
	await(t, testkit.Start(t, testkit.Command{Program: program, Dir: dir,
		Args: []string{"-p", dir, "-c", write(t, filepath.Join(dir, "nginx.conf"), conf), "-e", "stderr"}}), listen)
	return &log{filepath.Join(dir, "access.log")}
}

const apacheModules = "/usr/lib/apache2/modules/"

// apache starts Apache with a process model and so many workers; below /reads/, /leaves/ and
// /refuses/ PHP answers, if it is asked for.
func apache(model, php string, workers int) func(t *testing.T, listen, backend string) *log {
	return func(t *testing.T, listen, backend string) *log {
		program, dir := installed(t, "apache2", "apache2-bin"), t.TempDir()
		var load strings.Builder
		for _, m := range []string{model, "authz_core", "proxy", "proxy_http", "rewrite", "headers", "alias"} {
			file := apacheModules + "mod_" + m + ".so"
			if _, err := os.Stat(file); err != nil {
				t.Skipf("Apache's modules are not where Debian has them: %v", err)
			}
			fmt.Fprintf(&load, "LoadModule %s_module %s\n", m, file)
		}
		ways := "ProxyPass /reads/ http://BACKEND/reads/\nProxyPass /refuses/ http://BACKEND/refuses/\nRewriteRule ^/leaves/ - [R=200,L]\n"
		if php != "" {
			found, err := filepath.Glob(apacheModules + "libphp*.so")
			if err != nil || len(found) == 0 {
				t.Skip("mod_php is not installed (apt-get install libapache2-mod-php)")
			}
			fmt.Fprintf(&load, "LoadModule php_module %s\n", found[0])
			for _, d := range []string{dir, filepath.Dir(dir)} { // what Apache runs as may not read it
				if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // see above
					t.Fatal(err)
				}
			}
			ways = "<Directory DIR>\nSetHandler application/x-httpd-php\nAllowOverride None\n</Directory>\n"
			for name, code := range map[string]string{
				"reads":   `file_get_contents('php://input'); echo 'read';`,
				"leaves":  `echo 'left';`,
				"refuses": `http_response_code(400); echo 'refused';`,
			} {
				ways += "AliasMatch ^/" + name + "/ " + write(t, filepath.Join(dir, name+".php"), "<?php "+code) + "\n"
			}
		}
		user := ""
		if os.Getuid() == 0 {
			user = "User www-data\nGroup www-data\n"
		}
		conf := strings.NewReplacer("DIR", dir, "LISTEN", listen, "BACKEND", backend, "WORKERS",
			strconv.Itoa(workers)).Replace(load.String() + user + `
ServerRoot DIR
DefaultRuntimeDir DIR
PidFile DIR/apache.pid
Mutex file:DIR
ErrorLog /dev/stderr
ServerName localhost
Listen LISTEN
LogFormat "%U %>s %k" targets
CustomLog DIR/access.log targets
StartServers 1
MaxRequestWorkers WORKERS
KeepAliveTimeout 60
ThreadsPerChild 32
Header always set X-Echo "expr=%{REQUEST_URI}"
RewriteEngine on
RewriteRule ^/early/ - [F,L]
` + ways)
		if model == "mpm_prefork" {
			conf = strings.Replace(conf, "ThreadsPerChild 32\n", "", 1)
		}
		p := testkit.Start(t, testkit.Command{Program: program, Dir: dir,
			Args: []string{"-f", write(t, filepath.Join(dir, "apache.conf"), conf), "-D", "FOREGROUND"}})
		await(t, p, listen)
		return &log{filepath.Join(dir, "access.log")}
	}
}
