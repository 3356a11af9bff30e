//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.etcd.io/etcd/api/v3/version"
)

// Names of peers, as they are printed.
const (
	peerEmbedded = "Hooklock, embedded etcd"
	peerExternal = "Hooklock, one etcd member"
	peerNginx    = "nginx, which protects nothing"
	peerOnce     = "PostgreSQL, one commit"
	peerTwice    = "PostgreSQL, two commits"
	peerRedis    = "Redis, a lease"
	peerMutex    = "etcd, concurrency.Mutex and a put"
	peerRestate  = "Restate, a virtual object"
)

const (
	peerWorkflows = 5000
	hotCallers    = 64
	copyCallers   = 32
)

// restatePackage is what npm brings where no restate-server is installed.
const restatePackage = "@restatedev/restate-server@1.7.12"

// peer is a way to protect an event.
type peer struct {
	name    string
	child   *child   // where the deliveries go
	beside  []*child // whoever works for it, too
	path    string
	hotPath string // of what shares one workflow; "" = path
}

// cell is what every peer is measured with.
type cell struct {
	title   string
	kind    string
	callers int
}

var cells = []cell{
	{"New events, 1 caller", kindSpread, 1},
	{"New events, 32 callers", kindSpread, 32},
	{"New events, 256 callers", kindSpread, 256},
	{fmt.Sprintf("New events of one workflow, %d callers", hotCallers), kindHot, hotCallers},
	{fmt.Sprintf("Copies of a settled event, %d callers", copyCallers), kindCopies, copyCallers},
}

// errAbsent is of a program that is not installed.
var errAbsent = errors.New("not installed")

// peers is the other comparison. Whoever cannot be had, or breaks, is named, and the rest goes on.
func (f *family) peers(o *options, out io.Writer) error {
	up, err := f.startSelf(roleUpstream, "-service", o.service)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "etcd %s in each that has one; %s; %d cores; load %s\n", version.Version, runtime.Version(),
		runtime.NumCPU(), loadAverage())
	rows := map[*cell][]*subject{}
	for _, c := range castPeers {
		if !o.only.MatchString(c.name) {
			continue
		}
		var p *peer
		var said string
		_, err := os.Stat(o.peers)
		switch {
		case c.service && err != nil:
			err = fmt.Errorf("its service was not built (go -C test/peers build says why): %w", err)
		default:
			p, said, err = c.start(f, o, up)
		}
		if err != nil {
			fmt.Fprintf(out, "left out: %s: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", c.name, said)
		p.name = c.name
		for i := range cells {
			rows[&cells[i]] = append(rows[&cells[i]], p.subject(&cells[i]))
		}
	}
	fmt.Fprintf(out, "%d rounds of %s for each, in turn; 1 KiB POST, %d workflows; CPU is of all processes but the "+
		"callers\n", o.rounds, o.duration, peerWorkflows)
	for i := range cells {
		c := &cells[i]
		for n := -1; n < o.rounds; n++ {
			rows[c] = f.turn(o, rows[c], n, out)
		}
		reportPeers(out, c, rows[c])
	}
	fmt.Fprintf(out, "\nload at the end: %s\n", loadAverage())
	return f.ctx.Err()
}

// turn is one round of all; round -1 warms up. It returns who came through.
func (f *family) turn(o *options, row []*subject, n int, out io.Writer) []*subject {
	broken := map[*subject]bool{}
	for i := range row {
		s := row[(i+max(n, 0))%len(row)]
		r, err := f.measure(o, s, n)
		switch {
		case f.ctx.Err() != nil:
			return nil
		case err != nil:
			fmt.Fprintf(out, "left out: %s: %v\n", s.name, err)
			broken[s] = true
		case n >= 0:
			s.rounds = append(s.rounds, r)
		}
	}
	return slices.DeleteFunc(row, func(s *subject) bool { return broken[s] })
}

func (p *peer) subject(c *cell) *subject {
	s := &subject{name: p.name, child: p.child, beside: p.beside, kind: c.kind, connections: c.callers,
		path: cmp.Or(p.path, defaultPath), workflows: peerWorkflows}
	if c.kind == kindHot && p.hotPath != "" {
		s.path = p.hotPath
	}
	if c.kind == kindCopies {
		s.prepare = func(run string) (func() error, error) {
			first := &sender{o: loadOptions{target: p.child.addr, kind: kindCopies, path: s.path, run: run}}
			defer first.hangUp()
			// what the copies get says how it went
			return func() error { return nil }, first.exchange(first.request(0), &first.response)
		}
	}
	return s
}

// reportPeers prints a table as a page has it.
func reportPeers(out io.Writer, c *cell, row []*subject) {
	fmt.Fprintf(out, "\n%s:\n\n", c.title)
	last, rule := "", ""
	if c.kind == kindHot {
		last, rule = " a caller's fewest, most |", " --- |"
	}
	fmt.Fprintf(out, "| | events/s | p50 ms | p99 ms | CPU µs an event |%s\n| --- | --- | --- | --- | --- |%s\n", last,
		rule)
	for _, s := range row {
		if c.kind == kindHot {
			last = fmt.Sprintf(" %.0f, %.0f |", s.span(fewestOf).median, s.span(mostOf).median)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %.1f | %s |%s\n", s.name, s.span(rateOf).text(0), s.span(p50Of).text(1),
			s.span(p99Of).median, s.span(cpuOf).text(0), last)
	}
}

// castPeers start whoever takes part, and say which release they are.
var castPeers = []struct {
	name    string
	service bool // which is of test/peers
	start   func(f *family, o *options, up *child) (*peer, string, error)
}{
	{peerEmbedded, false, func(f *family, o *options, up *child) (*peer, string, error) {
		return castPeerHooklock(f, o, up, false)
	}},
	{peerExternal, false, func(f *family, o *options, up *child) (*peer, string, error) {
		return castPeerHooklock(f, o, up, true)
	}},
	{peerOnce, true, func(f *family, o *options, _ *child) (*peer, string, error) { return castPostgres(f, o, 1) }},
	{peerTwice, true, func(f *family, o *options, _ *child) (*peer, string, error) { return castPostgres(f, o, 2) }},
	{peerRedis, true, castRedis},
	{peerMutex, true, castMutex},
	{peerRestate, true, castRestate},
	{peerNginx, false, castNginx},
}

// castPeerHooklock is Hooklock at its defaults, log lines with them.
func castPeerHooklock(f *family, o *options, up *child, external bool) (*peer, string, error) {
	if o.hooklock == "" {
		return nil, "", errors.New("-hooklock is empty")
	}
	p := &peer{beside: []*child{up}, hotPath: "/waits/{flow}"}
	run := hooklockRun{program: o.hooklock, upstream: up.addr, name: "embedded"}
	if external {
		etcd, err := f.startSelf(roleEtcd, "-target", filepath.Join(f.dir, "member"))
		if err != nil {
			return nil, "", err
		}
		p.beside = append(p.beside, etcd)
		run.name, run.etcd = "external", etcd.addr
	}
	var err error
	p.child, err = run.start(f)
	return p, says(o.hooklock, "version"), err
}

func castNginx(f *family, o *options, up *child) (*peer, string, error) {
	c, err := startNginx(f, o.nginx, up.addr, io.Discard)
	if err != nil {
		return nil, "", err
	}
	if c == nil {
		return nil, "", errAbsent
	}
	return &peer{child: c, beside: []*child{up}}, says(o.nginx, "-v"), nil
}

// service starts the program of test/peers.
func (f *family) service(o *options, as, store string, more ...string) (*child, error) {
	return f.startAnnounced(as, exec.Command(o.peers, append([]string{"-as", as, "-store", store}, more...)...))
}

// castPostgres is a server at its own defaults, in the newest release that is on PATH or where
// Debian has it.
func castPostgres(f *family, o *options, commits int) (*peer, string, error) {
	programs := func(name string) (string, error) {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if err == nil && len(found) == 0 {
			err = errAbsent
		}
		if err != nil {
			return "", err
		}
		return found[len(found)-1], nil
	}
	initdb, err := programs("initdb")
	if err != nil {
		return nil, "", err
	}
	postgres, err := programs("postgres")
	if err != nil {
		return nil, "", err
	}
	name := "postgres-" + strconv.Itoa(commits)
	dir := filepath.Join(f.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", err
	}
	owner, err := f.unprivileged(dir)
	if err != nil {
		return nil, "", err
	}
	initialize := exec.Command(initdb, "--pgdata", dir, "--auth", "trust", "--username", "bench", "--locale", "C",
		"--encoding", "UTF8")
	initialize.SysProcAttr, initialize.Dir = &syscall.SysProcAttr{Credential: owner}, "/"
	if said, err := initialize.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("initdb: %w: %.500s", err, said)
	}
	addrs, err := freePorts(1)
	if err != nil {
		return nil, "", err
	}
	_, port, _ := strings.Cut(addrs[0], ":")
	server := exec.Command(postgres, "-D", dir, "-h", "127.0.0.1", "-p", port, "-k", "")
	server.SysProcAttr, server.Dir = &syscall.SysProcAttr{Credential: owner}, "/"
	c, err := f.start(name, server)
	if err != nil {
		return nil, "", err
	}
	ready := func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid")) // its last line is its status
		return err == nil && strings.HasSuffix(strings.TrimSpace(string(text)), "ready")
	}
	if err := f.await(c, ready); err != nil {
		return nil, "", err
	}
	service, err := f.service(o, "postgres", "postgres://bench@"+addrs[0]+"/postgres", "-commits",
		strconv.Itoa(commits))
	return &peer{child: service, beside: []*child{c}}, says(postgres, "--version"), err
}

// unprivileged is who owns dir from now on: PostgreSQL does not run as root. nil is ourselves.
func (f *family) unprivileged(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(f.dir, 0o711), os.Chown(dir, uid, gid)); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// castRedis is a server that syncs its file before each answer, as etcd and PostgreSQL do.
func castRedis(f *family, o *options, _ *child) (*peer, string, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, "", errAbsent
	}
	addrs, err := freePorts(1)
	if err != nil {
		return nil, "", err
	}
	_, port, _ := strings.Cut(addrs[0], ":")
	dir := filepath.Join(f.dir, "redis")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", err
	}
	c, err := f.start("redis", exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always"))
	if err != nil {
		return nil, "", err
	}
	if err := f.await(c, func() bool { return accepts(addrs[0]) }); err != nil {
		return nil, "", err
	}
	service, err := f.service(o, "redis", addrs[0])
	return &peer{child: service, beside: []*child{c}}, says(program, "--version"), err
}

func castMutex(f *family, o *options, _ *child) (*peer, string, error) {
	etcd, err := f.startSelf(roleEtcd, "-target", filepath.Join(f.dir, "mutex"))
	if err != nil {
		return nil, "", err
	}
	service, err := f.service(o, "mutex", etcd.addr)
	return &peer{child: service, beside: []*child{etcd}}, "client and server of etcd " + version.Version, err
}

// castRestate is a server at its own defaults, but for its addresses and its telemetry. It syncs
// its disk.
func castRestate(f *family, o *options, _ *child) (*peer, string, error) {
	program, err := f.restate()
	if err != nil {
		return nil, "", err
	}
	addrs, err := freePorts(3)
	if err != nil {
		return nil, "", err
	}
	config := fmt.Sprintf(`node-name = "bench"
listen-mode = "tcp"
disable-telemetry = true
log-filter = "error"
base-dir = %q
bind-address = %q
[ingress]
bind-address = %q
[admin]
bind-address = %q
`, filepath.Join(f.dir, "restate"), addrs[0], addrs[1], addrs[2])
	file := filepath.Join(f.dir, "restate.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, "", err
	}
	c, err := f.start("restate", exec.Command(program, "--no-logo", "--config-file", file))
	if err != nil {
		return nil, "", err
	}
	if err := f.await(c, func() bool {
		return healthy("http://"+addrs[2]+"/health") && healthy("http://"+addrs[1]+"/restate/health")
	}); err != nil {
		return nil, "", err
	}
	service, err := f.service(o, "restate", "http://"+addrs[2])
	if err != nil {
		return nil, "", err
	}
	c.addr = addrs[1]
	return &peer{child: c, beside: []*child{service}, path: "/events/{flow}/handle"}, says(program, "--version"), nil
}

// restate is where its server is: on PATH, or from npm into the folder of the run.
func (f *family) restate() (string, error) {
	if path, err := exec.LookPath("restate-server"); err == nil {
		return path, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("neither restate-server nor npm, which would bring it, is installed")
	}
	dir := filepath.Join(f.dir, "npm")
	install := exec.CommandContext(f.ctx, npm, "install", "--prefix", dir, "--ignore-scripts", "--no-audit",
		"--no-fund", restatePackage)
	if said, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w: %.500s", restatePackage, err, said)
	}
	found, err := filepath.Glob(filepath.Join(dir, "node_modules/@restatedev/restate-server-*/bin/restate-server"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no program for this machine", restatePackage)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// says is the first line that a program prints about itself.
func says(program, argument string) string {
	said, err := exec.Command(program, argument).CombinedOutput()
	if err != nil {
		return "of unknown release"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return line
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	now, _, _ := strings.Cut(string(text), " ")
	return now
}
