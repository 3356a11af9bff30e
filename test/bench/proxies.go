//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// quietLog is a configuration's log that is off, as nginx's access log is.
const quietLog = "log: {level: error}\n"

// hooklockRun is a Hooklock to start.
type hooklockRun struct {
	program, upstream string
	name              string   // tells it from others of its kind
	log               string   // of its configuration
	env               []string // added to the environment
	etcd              string   // host:port; "": an embedded one
	keeps             bool     // the requests of route bench
}

// start runs the program with few lines of configuration, and what keeps it out of the way of
// others.
func (r hooklockRun) start(f *family) (*child, error) {
	addrs, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	listen, admin := addrs[0], addrs[1]
	config := fmt.Sprintf(`upstream: http://%s
unmatched: pass
routes:
  - {name: bench, path: "/hooks/{flow}", workflow: "{path.flow}", verify: {scheme: token, header: X-Signature, secret_env: BENCH_SIGNATURE}}
  - {name: parks, path: "/parks/{flow}", workflow: "parks/{path.flow}", park: {enabled: true, after: 1m}}
  - {name: accepts, path: "/accepts/{flow}", workflow: "accepts/{path.flow}", park: {enabled: true, after: 0s, max_waiting: 100000}}
  - {name: waits, path: "/waits/{flow}", workflow: "waits/{path.flow}", lock: {strategy: wait, wait_timeout: 1m}}
park_store: {single_member: true}
listen: %s
admin: {listen: "%s"}
data_dir: %q
`, r.upstream, listen, admin, filepath.Join(f.dir, r.name+".data")) + r.log
	if r.keeps {
		config = strings.Replace(config, "{name: bench,", "{name: bench, requests: {keep: 1h},", 1)
		store := fmt.Sprintf("park_store: {dir: %q, ", filepath.Join(f.dir, r.name+".kept"))
		config = strings.Replace(config, "park_store: {", store, 1)
	}
	endpoints := "" // an embedded one
	if r.etcd != "" {
		endpoints = fmt.Sprintf("endpoints: [%q], ", "http://"+r.etcd)
	}
	// one refusal of thousands, for a disk that was slow once, would end the run
	config += "etcd: {" + endpoints + "request_timeout: 10s}\n"
	file := filepath.Join(f.dir, r.name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(r.program, "serve", "--config", file)
	cmd.Env = append(append(os.Environ(), "BENCH_SIGNATURE="+signature), r.env...)
	c, err := f.start(r.name, cmd)
	if err != nil {
		return nil, fmt.Errorf("%w (make build builds it)", err)
	}
	c.addr, c.admin = listen, admin
	return c, f.await(c, func() bool { return healthy("http://" + admin + "/readyz") })
}

// startNginx runs nginx as a well-tuned reverse proxy, or returns nil where it is not installed.
func startNginx(f *family, program, upstream string, out io.Writer) (*child, error) {
	if program == "" {
		return nil, nil
	}
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintln(out, "nginx is not installed: left out")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	addrs, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`daemon off;
worker_processes %d;
pid "%s/nginx.pid";
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path "%[2]s/body"; proxy_temp_path "%[2]s/proxy";
  fastcgi_temp_path "%[2]s/fastcgi"; uwsgi_temp_path "%[2]s/uwsgi"; scgi_temp_path "%[2]s/scgi";
  keepalive_requests 100000000;
  upstream behind { server %[3]s; keepalive 512; keepalive_requests 100000000; }
  server {
    listen %[4]s;
    location / {
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`, runtime.NumCPU(), f.dir, upstream, addrs[0])
	file := filepath.Join(f.dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	c, err := f.start("nginx", exec.Command(path, "-c", file, "-p", f.dir, "-e", "stderr"))
	if err != nil {
		return nil, err
	}
	c.addr = addrs[0]
	return c, f.await(c, func() bool { return accepts(c.addr) })
}
