package front

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// careless is a front for which deploy/ has no file, or one with settings that its page warns of.
// In its file, LISTEN is where it listens, PORT the port of that, and AT0, AT1, PORT0 and PORT1 are
// the replicas; DIR is a folder of its own.
type careless struct {
	name, program string
	file          string
	args          string // FILE is the path of the file
	check, result string // what doctor is to say
	found         string
}

const ownVarnish = `vcl 4.1;
import directors;
backend a { .host = "127.0.0.1"; .port = "PORT0"; }
backend b { .host = "127.0.0.1"; .port = "PORT1"; }
sub vcl_init { new both = directors.round_robin(); both.add_backend(a); both.add_backend(b); }
sub vcl_recv { set req.backend_hint = both.backend(); }
`

const ownSquid = `http_port LISTEN accel defaultsite=hooks.example.com vhost
cache_peer 127.0.0.1 parent PORT0 0 no-query originserver round-robin name=a
cache_peer 127.0.0.1 parent PORT1 0 no-query originserver round-robin name=b
http_access allow all
never_direct allow all
cache deny all
pid_filename DIR/pid
cache_log DIR/cache.log
access_log none
coredump_dir DIR
pinger_enable off
shutdown_lifetime 1 seconds
max_filedescriptors 1024
`

const ownLighttpd = `server.modules = ("mod_proxy")
server.document-root = "DIR"
server.bind = "127.0.0.1"
server.port = PORT
server.errorlog = "DIR/error.log"
proxy.balance = "round-robin"
proxy.server = ("/" => (("host" => "127.0.0.1", "port" => PORT0), ("host" => "127.0.0.1", "port" => PORT1)))
`

const ownHAProxy = `defaults
    mode http
    timeout server 60s
    timeout client 60s
    timeout connect 2s
frontend webhooks
    bind LISTEN
    default_backend hooklock
backend hooklock
    balance roundrobin
    MORE
    server a AT0 check OBSERVE
    server b AT1 check OBSERVE
`

const ownCaddy = `{
	admin off
	auto_https off
}
http://:PORT {
	bind 127.0.0.1
	reverse_proxy AT0 AT1 {
		lb_policy round_robin
		MORE
	}
}
`

const ownNginx = `daemon off; master_process off; worker_processes 1; pid DIR/pid; error_log stderr;
events { worker_connections 128; }
http {
  access_log off; client_max_body_size 16m;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
  upstream hooklock { server AT0; server AT1; }
  server { listen LISTEN; location / { proxy_pass http://hooklock; proxy_set_header Host $http_host; } }
}
`

const (
	varnishArgs  = "-F -a LISTEN -f FILE -n DIR/work -s malloc,16m -j none"
	squidArgs    = "-N -f FILE"
	lighttpdArgs = "-D -f FILE"
	haproxyArgs  = "-db -f FILE"
	caddyArgs    = "run --adapter caddyfile --config FILE"
	nginxArgs    = "-p DIR -c FILE -e stderr"
)

var carelessFronts = []careless{
	{"Varnish repeats what has no body", "varnishd", ownVarnish, varnishArgs, "front, retries", "failed",
		"sent 2 times"},
	{"Varnish stays with a dead replica", "varnishd", ownVarnish, varnishArgs, "front, replicas", "failed",
		"of 24 requests fail (status 503)"},
	{"Squid repeats what has no body after 502", "squid", ownSquid, squidArgs, "front, answers", "failed",
		"sent again after 502 without a body: 2 times, 504 without a body: 2 times"},
	{"Squid keeps Authorization", "squid", ownSquid, squidArgs, "front, headers", "failed", "stripped: Authorization"},
	{
		"Squid with login=PASS does not", "squid",
		strings.ReplaceAll(ownSquid, "round-robin", "round-robin login=PASS"), squidArgs,
		"front, headers", "ok", "added: Cache-Control, Surrogate-Capability, Via, X-Forwarded-For",
	},
	{"lighttpd respells paths", "lighttpd", ownLighttpd, lighttpdArgs, "front, spelling", "warning",
		"/%E2%80%93~o'neil/x"},
	{
		"HAProxy repeats after 503", "haproxy",
		strings.NewReplacer("MORE", "retry-on 503", "OBSERVE", "").Replace(ownHAProxy), haproxyArgs,
		"front, answers", "failed", "sent again after 503: 4 times",
	},
	{
		"HAProxy takes 503 for death", "haproxy", strings.NewReplacer("MORE", "", "OBSERVE",
			"observe layer7 error-limit 3 on-error mark-down").Replace(ownHAProxy), haproxyArgs,
		"front, answers", "failed", "after answers such as 503 a delivery does not arrive: status 503",
	},
	{
		"Caddy takes 503 for death", "caddy",
		strings.ReplaceAll(ownCaddy, "MORE", "fail_duration 10s\n\t\tunhealthy_status 503"), caddyArgs,
		"front, answers", "failed", "after answers such as 503 a delivery does not arrive: status 503",
	},
	{
		"Caddy sends the header again and no body", "caddy", strings.ReplaceAll(ownCaddy, "MORE", "lb_try_duration 2s"),
		caddyArgs,
		"front, replicas", "failed", "requests fail (status 502)",
	},
	{"nginx takes broken connections for death", "nginx", ownNginx, nginxArgs, "front, retries", "failed",
		"after a connection has broken"},
}

func TestDoctorFindsWhatFrontsDoWithoutTheirFile(t *testing.T) {
	t.Parallel()
	for _, c := range carelessFronts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(c.program)
			if err != nil {
				t.Skipf("%s is not installed: nothing goes through it", c.program)
			}
			dir, listen, at := t.TempDir(), testkit.FreePort(t), []string{testkit.FreePort(t), testkit.FreePort(t)}
			words := []string{"DIR", dir, "LISTEN", listen, "AT0", at[0], "AT1", at[1]}
			for i, address := range []string{at[0], at[1], listen} {
				_, port, _ := net.SplitHostPort(address)
				words = append(words, []string{"PORT0", "PORT1", "PORT"}[i], port)
			}
			here := strings.NewReplacer(words...)
			file := write(t, filepath.Join(dir, "front.conf"), here.Replace(c.file))
			args := strings.Fields(strings.ReplaceAll(here.Replace(c.args), "FILE", file))
			running := testkit.Start(t, testkit.Command{Program: program, Args: args, Dir: dir,
				Env: []string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}})
			testkit.Until(t, c.program+" listens", func() bool {
				select {
				case <-running.Done():
					t.Fatalf("%s ended: %s%s", c.program, running.Stderr, running.Stdout)
				default:
				}
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listen)
				if err == nil {
					_ = conn.Close()
				}
				return err == nil
			})
			said := fmt.Sprintf("nothing is said of %s", c.check)
			for _, f := range doctorOf(t, listen, at) {
				if f.Check == c.check {
					said = f.Result + ": " + f.Found
				}
			}
			if !strings.HasPrefix(said, c.result+": ") || !strings.Contains(said, c.found) {
				t.Errorf("%s is %s, want %s: … %s", c.check, said, c.result, c.found)
			}
		})
	}
}
