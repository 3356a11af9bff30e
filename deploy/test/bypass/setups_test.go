package bypass

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// setup is a server with an endpoint. Its row in measured.md has the spellings that it reads as
// that endpoint.
type setup struct {
	name  string
	path  string
	start func(t *testing.T) (addr string)
}

func setups() []setup {
	return []setup{
		{"PHP's own server", "/hook.php", phpServer},
		{"nginx and PHP over FastCGI", "/hook.php", nginxPHP},
		{"a front controller behind nginx", "/hooks/a", nginxPHP},
		{"Apache and PHP over FastCGI", "/hook.php", apachePHP},
		{"lighttpd and PHP", "/hook.php", lighttpdPHP},
		{"Caddy and PHP", "/hook.php", caddyPHP},
		{"Caddy", "/hooks/a", caddy},
		{"Node, the target compared", "/hooks/a", node(`(q, s) => end(s, q.url.split("?")[0] === "/hooks/a")`)},
		{"Node, the target read by new URL", "/hooks/a",
			node(`(q, s) => end(s, new URL(q.url, "http://localhost").pathname === "/hooks/a")`)},
		{"Node, the decoded path compared", "/hooks/a",
			node(`(q, s) => end(s, decodeURIComponent(q.url.split("?")[0]).trim() === "/hooks/a")`)},
		{"Express", "/hooks/a", npm("express@5",
			`const app = require("express")(); app.all("/hooks/a", (q, s) => end(s, true)); app.use((q, s) => end(s, false)); serve(app)`)},
		{"Koa with its router", "/hooks/a",
			npm("koa@3 @koa/router@15",
				`const app = new (require("koa"))(), Router = require("@koa/router"), r = new (Router.Router || Router)();
r.all("/hooks/a", c => { c.set("X-Ran", "1"); c.body = "ran" }); app.use(r.routes()); serve(app.callback())`)},
		{"Django, path()", "/hooks/a", django(`path("hooks/a", run)`)},
		{"Django, re_path with $", "/hooks/a", django(`re_path(r"^hooks/a$", run)`)},
		{"Rack on Puma", "/hooks/a",
			puma(`run ->(env) { env["PATH_INFO"] == "/hooks/a" ? [200, {"X-Ran" => "1"}, ["ran"]] : [404, {}, []] }`)},
		{"Rails' router on Puma", "/hooks/a", puma(rails)},
		{"Python's http.server", "/hooks/a", python},
	}
}

// program is the path of a program, or the end of a test that needs it.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

const hookPHP = `<?php header("X-Ran: 1"); echo "ran";`

// indexPHP finds its route as Symfony's and Laravel's requests do: in what follows the script, else
// in the whole path.
const indexPHP = `<?php $u = $_SERVER["REQUEST_URI"]; $p = $u[0] === "/" && strpos($u, "//") !== 0 ? strtok($u, "?") : parse_url($u, PHP_URL_PATH);
if (strpos($p, "/index.php/") === 0) $p = substr($p, 10);
if (rawurldecode($p) === "/hooks/a") { header("X-Ran: 1"); echo "ran"; } else { http_response_code(404); }`

// phpFolder has an endpoint of its own and a front controller.
func phpFolder(t *testing.T) string {
	dir := t.TempDir()
	write(t, dir, "hook.php", hookPHP)
	write(t, dir, "index.php", indexPHP)
	return dir
}

func phpServer(t *testing.T) string {
	addr := testkit.FreePort(t)
	return await(t, testkit.Start(t,
		testkit.Command{Program: program(t, "php"), Args: []string{"-S", addr, "-t", phpFolder(t)}}), addr)
}

// fastCGI is the address of a PHP that speaks FastCGI.
func fastCGI(t *testing.T) string {
	addr := testkit.FreePort(t)
	return await(t, testkit.Start(t, testkit.Command{Program: program(t, "php-cgi"), Args: []string{"-b", addr}}), addr)
}

// fill puts a folder and addresses into a configuration.
func fill(text, dir, addr, fcgi string) string {
	_, port, _ := strings.Cut(addr, ":")
	return strings.NewReplacer("DIR", dir, "ADDR", addr, "PORT", port, "@FCGI", fcgi).Replace(text)
}

func nginxPHP(t *testing.T) string {
	nginx, dir, addr := program(t, "nginx"), phpFolder(t), testkit.FreePort(t)
	conf := write(t, dir, "nginx.conf",
		fill(`daemon off; master_process off; pid DIR/pid; error_log stderr; events {} http { access_log off;
client_body_temp_path DIR/a; proxy_temp_path DIR/b; fastcgi_temp_path DIR/c; uwsgi_temp_path DIR/d; scgi_temp_path DIR/e;
server { listen ADDR; root DIR;
location / { try_files $uri $uri/ /index.php$is_args$args; }
location ~ [^/]\.php(/|$) { fastcgi_split_path_info ^(.+?\.php)(/.*)$; fastcgi_pass @FCGI; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param REQUEST_URI $request_uri; fastcgi_param SCRIPT_NAME $fastcgi_script_name; fastcgi_param REDIRECT_STATUS 200;
fastcgi_param SERVER_PROTOCOL $server_protocol; fastcgi_param GATEWAY_INTERFACE CGI/1.1; } } }
`, dir, addr, fastCGI(t)))
	return await(t, testkit.Start(t,
		testkit.Command{Program: nginx, Args: []string{"-p", dir, "-c", conf, "-e", "stderr"}}), addr)
}

func apachePHP(t *testing.T) string {
	apache, dir, addr := program(t, "apache2"), phpFolder(t), testkit.FreePort(t)
	conf := write(t, t.TempDir(), "apache.conf", fill(`ServerName localhost
PidFile DIR/pid
Mutex default:DIR
ErrorLog /dev/stderr
Listen ADDR
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_fcgi_module /usr/lib/apache2/modules/mod_proxy_fcgi.so
DocumentRoot DIR
<Directory DIR>
Require all granted
</Directory>
ProxyFCGIBackendType GENERIC
<FilesMatch "\.php$">
SetHandler "proxy:fcgi://@FCGI"
</FilesMatch>
`, dir, addr, fastCGI(t)))
	return await(t, testkit.Start(t, testkit.Command{Program: apache, Args: []string{"-X", "-f", conf}}), addr)
}

func lighttpdPHP(t *testing.T) string {
	lighttpd, dir, addr := program(t, "lighttpd"), phpFolder(t), testkit.FreePort(t)
	fcgi := fastCGI(t)
	_, fcgiPort, _ := strings.Cut(fcgi, ":")
	conf := write(t, dir, "lighttpd.conf", fill(`server.bind = "127.0.0.1"
server.port = PORT
server.document-root = "DIR"
server.modules = ("mod_fastcgi")
fastcgi.server = (".php" => (("host" => "127.0.0.1", "port" => @FCGI, "broken-scriptfilename" => "enable")))
`, dir, addr, fcgiPort))
	return await(t, testkit.Start(t, testkit.Command{Program: lighttpd, Args: []string{"-D", "-f", conf}}), addr)
}

func caddyWith(t *testing.T, site, dir, fcgi string) string {
	program, addr := program(t, "caddy"), testkit.FreePort(t)
	conf := write(t, t.TempDir(), "Caddyfile",
		fill("{\nadmin off\nauto_https off\n}\nhttp://:PORT {\nbind 127.0.0.1\n"+site+"\n}\n", dir, addr, fcgi))
	home := t.TempDir()
	return await(t, testkit.Start(t,
		testkit.Command{Program: program, Args: []string{"run", "--adapter", "caddyfile", "--config", conf},
			Env: []string{"XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home}}), addr)
}

func caddyPHP(t *testing.T) string {
	program(t, "caddy")
	return caddyWith(t, "root * DIR\nphp_fastcgi @FCGI\nfile_server", phpFolder(t), fastCGI(t))
}

func caddy(t *testing.T) string {
	return caddyWith(t, "handle /hooks/a {\nheader X-Ran 1\nrespond ran\n}", "", "")
}

const nodeHead = `const end = (s, yes) => { if (yes) s.setHeader("X-Ran", "1"); s.statusCode = yes ? 200 : 404; s.end() };
const serve = f => require("http").createServer((q, s) => { try { f(q, s) } catch (e) { s.statusCode = 400; s.end() } }).listen(+process.argv[2], "127.0.0.1");
`

func nodeIn(t *testing.T, dir, script string) string {
	addr := testkit.FreePort(t)
	_, port, _ := strings.Cut(addr, ":")
	server := testkit.Command{Program: measuredNode(t),
		Args: []string{write(t, dir, "server.js", nodeHead+script), port}, Dir: dir}
	return await(t, testkit.Start(t, server), addr)
}

// measuredNode is a Node of the version of measured.md. Node 18, which is Debian 12's, lets other
// bytes pass.
func measuredNode(t *testing.T) string {
	t.Helper()
	node := program(t, "node")
	if version, err := exec.Command(node, "--version").Output(); err != nil ||
		!strings.HasPrefix(string(version), "v20.") {
		t.Skipf("node is %s (%v), and measured.md has what Node 20 does", strings.TrimSpace(string(version)), err)
	}
	return node
}

func node(handler string) func(*testing.T) string {
	return func(t *testing.T) string { return nodeIn(t, t.TempDir(), "serve("+handler+")") }
}

// npm is a Node server with packages of the registry that npm is set up for.
func npm(packages, script string) func(*testing.T) string {
	return func(t *testing.T) string {
		dir := t.TempDir()
		args := append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir},
			strings.Fields(packages)...)
		if out, err := exec.Command(program(t, "npm"), args...).CombinedOutput(); err != nil {
			t.Skipf("npm cannot install %s: %v\n%s", packages, err, out)
		}
		return nodeIn(t, dir, script)
	}
}

func django(route string) func(*testing.T) string {
	return func(t *testing.T) string {
		gunicorn, dir, addr := program(t, "gunicorn"), t.TempDir(), testkit.FreePort(t)
		if out, err := exec.Command("/usr/bin/python3", "-c", "import django").CombinedOutput(); err != nil {
			t.Skipf("Django is not installed for /usr/bin/python3: %s", out)
		}
		write(t, dir, "app.py", `from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", MIDDLEWARE=["django.middleware.common.CommonMiddleware"])
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path, re_path
def run(request): return HttpResponse("ran", headers={"X-Ran": "1"})
urlpatterns = [`+route+`]
application = get_wsgi_application()
`)
		return await(t, testkit.Start(t,
			testkit.Command{Program: gunicorn, Args: []string{"-b", addr, "--threads", "8", "app:application"},
				Dir: dir}), addr)
	}
}

const rails = `require "action_controller"
Routes = ActionDispatch::Routing::RouteSet.new
Routes.draw { match "/hooks/a(.:format)", to: ->(env) { [200, {"X-Ran" => "1"}, ["ran"]] }, via: :all }
run Routes`

func puma(app string) func(*testing.T) string {
	return func(t *testing.T) string {
		puma, dir, addr := program(t, "puma"), t.TempDir(), testkit.FreePort(t)
		if strings.Contains(app, "action_controller") &&
			exec.Command("ruby", "-e", `require "action_controller"`).Run() != nil {
			t.Skip("Rails' action_controller is not installed (ruby-actionpack)")
		}
		config := write(t, dir, "config.ru", app)
		return await(t, testkit.Start(t,
			testkit.Command{Program: puma, Args: []string{"-b", "tcp://" + addr, "-e", "production", config},
				Dir: dir}), addr)
	}
}

func python(t *testing.T) string {
	addr, dir := testkit.FreePort(t), t.TempDir()
	_, port, _ := strings.Cut(addr, ":")
	script := write(t, dir, "server.py", `import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit
class H(BaseHTTPRequestHandler):
    def run(self):
        ran = urlsplit(self.path).path == "/hooks/a"
        self.send_response(200 if ran else 404)
        if ran: self.send_header("X-Ran", "1")
        self.send_header("Content-Length", "0"); self.end_headers()
    do_GET = do_HEAD = do_POST = do_OPTIONS = do_DELETE = run
HTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
`)
	return await(t, testkit.Start(t, testkit.Command{Program: program(t, "python3"), Args: []string{script, port},
		Dir: filepath.Dir(script)}), addr)
}
