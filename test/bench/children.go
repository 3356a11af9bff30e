//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// patience is how long a process may take until it is ready, or until it has run what was parked in
// a round.
const patience = 2 * time.Minute

// family is every process of a run.
type family struct {
	ctx  context.Context
	self string // this program
	dir  string // for files of the run
	all  []*child
}

// child is a process with a group of its own.
type child struct {
	name  string
	cmd   *exec.Cmd
	addr  string // host:port where it takes requests
	admin string // host:port of its metrics; only Hooklock's
	log   string // file of its standard error
	done  chan struct{}
}

// start runs a program. It is to be called on the locked main thread only: see main.
func (f *family) start(name string, cmd *exec.Cmd) (*child, error) {
	c := &child{name: name, cmd: cmd, log: filepath.Join(f.dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	// SIGTERM, because nginx must end its workers when this program is killed. Whoever does not
	// heed it is killed in stop.
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGTERM
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	f.all = append(f.all, c)
	go func() {
		_ = cmd.Wait() // how it ended is of interest only while it should not have, and then its log says more
		close(c.done)
	}()
	return c, nil
}

// startSelf runs a part of this program that prints its address.
func (f *family) startSelf(role string, args ...string) (*child, error) {
	return f.startAnnounced(role, exec.Command(f.self, append([]string{"-as", role}, args...)...))
}

// startAnnounced runs a program that prints its address.
func (f *family) startAnnounced(role string, cmd *exec.Cmd) (*child, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdout = w
	c, err := f.start(role, cmd)
	w.Close()
	if err != nil {
		return nil, err
	}
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return nil, c.failed(err)
	}
	c.addr = strings.TrimSpace(line)
	return c, nil
}

// stop ends all processes, the youngest first, and waits for them.
func (f *family) stop() {
	for _, c := range slices.Backward(f.all) {
		select {
		case <-c.done: // its number may be somebody else's by now
			continue
		default:
		}
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(3 * time.Second):
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
			<-c.done
		}
	}
}

// forget drops a process that has ended.
func (f *family) forget(c *child) {
	f.all = slices.DeleteFunc(f.all, func(other *child) bool { return other == c })
}

// failed adds to err what the child said.
func (c *child) failed(err error) error {
	text, _ := os.ReadFile(c.log)
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	return fmt.Errorf("%s: %w; it said: %s", c.name, err, bytes.TrimSpace(text))
}

// await asks until ready says so. There is no event to wait for: the processes are other people's
// programs.
func (f *family) await(c *child, ready func() bool) error {
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-c.done:
			return c.failed(errors.New("ended early"))
		case <-deadline:
			return c.failed(errors.New("not ready in time"))
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
	return nil
}

func accepts(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func healthy(url string) bool {
	client := http.Client{Timeout: time.Second}
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// freePorts are ports that nobody listens on now. They are below those that the kernel takes for
// connections (32768 and up, ip(7)), of which a load makes many: one of these may have it by the
// time a program listens there.
func freePorts(n int) ([]string, error) {
	const first, last = 12000, 32000
	var addrs []string
	var err error
	for tries := 0; len(addrs) < n && tries < 1000; tries++ {
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))); err == nil {
			defer ln.Close() // at the end, so that none is given twice
			addrs = append(addrs, ln.Addr().String())
		}
	}
	if len(addrs) < n {
		return nil, fmt.Errorf("no port from %d to %d: %w", first, last, err)
	}
	return addrs, nil
}
