package systemd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// machine is a Debian that has booted, with a network of its own that leads nowhere. Its /tmp is
// its own: systemd-tmpfiles empties it at the start.
type machine struct {
	t       *testing.T
	root    string // where its files are, seen from outside
	pid     int    // of its systemd, seen from outside
	network *os.File
}

// boot starts a machine on a fresh tree and waits until it is up.
func boot(t *testing.T) *machine {
	t.Helper()
	if why := missing(); why != "" {
		t.Skip("nothing is booted: " + why)
	}
	tree := kit.Debian(t)
	m := &machine{t: t, root: filepath.Join(t.TempDir(), "machine")}
	if err := os.Mkdir(m.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xf", tree, "-C", m.root, "--exclude", "./dev/*").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	name := fmt.Sprintf("hooklock-test-%d", os.Getpid())
	nspawn := testkit.Start(t, testkit.Command{Program: "systemd-nspawn", Args: []string{
		"--quiet", "--boot", "--directory", m.root, "--machine", name, "--private-network", "--register=no",
		"--keep-unit", "--console=pipe",
	}})
	var first *os.Process // in the machine
	t.Cleanup(func() {    // an orderly end unmounts what a SIGKILL leaves
		_ = syscall.Kill(nspawn.Pid(), syscall.SIGTERM)
		testkit.Until(t, "the machine is off", func() bool {
			select {
			case <-nspawn.Done():
				return true
			default:
				return false
			}
		})
		if first != nil {
			_ = first.Kill() // nspawn may end before its machine, which then stays
		}
	})
	testkit.Until(t, "systemd runs", func() bool {
		select {
		case <-nspawn.Done():
			t.Skipf("systemd-nspawn cannot boot a machine here: %s%s", nspawn.Stdout, nspawn.Stderr)
		default:
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", nspawn.Pid()))
		if err != nil {
			return false
		}
		m.pid, _ = strconv.Atoi(strings.TrimSpace(string(children)))
		if m.pid == 0 {
			return false
		}
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.pid))
		return string(comm) == "systemd\n"
	})
	first, _ = os.FindProcess(m.pid) // never fails
	testkit.Until(t, "the machine is up", func() bool {
		out, _ := m.try("systemctl is-system-running")
		return strings.TrimSpace(out) == "running"
	})
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = network.Close() })
	m.network = network
	return m
}

// try runs lines of shell in the machine, as root.
func (m *machine) try(lines string) (string, error) {
	c := exec.Command("nsenter", "--target", strconv.Itoa(m.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--",
		"sh", "-euc", lines)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive"}
	out, err := c.CombinedOutput()
	return string(out), err
}

// run is try for lines that must succeed; without the last newline.
func (m *machine) run(lines string) string {
	m.t.Helper()
	out, err := m.try(lines)
	if err != nil {
		journal, _ := m.try("journalctl --no-pager --lines 60")
		m.t.Fatalf("%s: %v\n%s\n%s", lines, err, out, journal)
	}
	return strings.TrimSuffix(out, "\n")
}

// refuses is run for lines that must fail.
func (m *machine) refuses(lines string) string {
	m.t.Helper()
	out, err := m.try(lines)
	if err == nil {
		m.t.Errorf("%s: it succeeded:\n%s", lines, out)
	}
	return out
}

// show is a property of a unit.
func (m *machine) show(unit, property string) string {
	m.t.Helper()
	return m.run("systemctl show --property " + property + " --value " + unit)
}

// await waits until a property of a unit is what is wanted.
func (m *machine) await(unit, property, want string) {
	m.t.Helper()
	got := ""
	defer func() {
		if m.t.Failed() {
			journal, _ := m.try("journalctl --no-pager --lines 60")
			m.t.Logf("%s of %s is %q\n%s", property, unit, got, journal)
		}
	}()
	testkit.Until(m.t, unit+": "+property+"="+want, func() bool {
		got = m.show(unit, property)
		return got == want
	})
}

// put copies a file of this machine into the other one.
func (m *machine) put(from, to string) {
	m.t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write(to, string(text))
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(path string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

// inside calls f where sockets are made in the machine's network. The thread is not given back,
// because it cannot be trusted to be outside.
func (m *machine) inside(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(int(m.network.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// dial connects to an address in the machine.
func (m *machine) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = m.inside(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// listen listens on an address in the machine.
func (m *machine) listen(address string) (ln net.Listener) {
	m.t.Helper()
	if err := m.inside(func() (err error) {
		ln, err = net.Listen("tcp", address)
		return err
	}); err != nil {
		m.t.Fatal(err)
	}
	return ln
}

// addresses gives the machine further addresses, on its loopback.
func (m *machine) addresses(all ...string) {
	m.t.Helper()
	for _, a := range all {
		c := exec.Command("nsenter", "--target", strconv.Itoa(m.pid), "--net", "--", "ip", "address", "add", a+"/32",
			"dev", "lo")
		if out, err := c.CombinedOutput(); err != nil {
			m.t.Fatalf("%v: %s (apt-get install iproute2)", err, out)
		}
	}
}
