//go:build linux

package kubelet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// container is one of a pod's. It is started again and again where the pod says so.
type container struct {
	spec    *corev1.Container
	sidecar bool // an init container that stays

	root  string // empty: the machine's
	path  string
	args  []string
	env   []string
	log   string
	image Image

	mu       sync.Mutex
	cmd      *exec.Cmd
	began    time.Time
	over     chan struct{} // closed when the process of now has ended
	code     int
	ran      bool // it has ended at least once
	restarts int
	started  bool // its startup probe has passed
	ready    bool
}

func newContainer(p *pod, spec *corev1.Container, sidecar bool, folders map[string]string) (*container, error) {
	name, _, _ := strings.Cut(spec.Image, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	image, known := p.k.Images[name]
	if !known {
		return nil, fmt.Errorf("ErrImagePull: nobody knows %s", spec.Image)
	}
	c := &container{spec: spec, sidecar: sidecar, image: image, log: filepath.Join(p.dir, spec.Name+".log")}
	c.env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOSTNAME=" + p.spec.Name}, image.Env...)
	values := map[string]string{}
	for _, e := range spec.Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			value = p.field(e.ValueFrom.FieldRef.FieldPath)
		}
		values[e.Name] = expand(value, values)
		c.env = append(c.env, e.Name+"="+values[e.Name])
	}
	command := spec.Command
	if len(command) == 0 {
		command = image.Entrypoint
	}
	for _, a := range append(append([]string{}, command...), spec.Args...) {
		c.args = append(c.args, expand(a, values))
	}
	if c.path = c.args[0]; image.Root != "" {
		c.root = filepath.Join(p.dir, "roots", spec.Name)
		if err := errors.Join(link(image.Root, c.root), os.MkdirAll(filepath.Join(c.root, "etc"), 0o755)); err != nil {
			return nil, err
		}
		_ = os.Remove(filepath.Join(c.root, "etc", "hosts"))
		if err := os.Link(p.k.hosts.file(p.spec.Namespace), filepath.Join(c.root, "etc", "hosts")); err != nil {
			return nil, err
		}
		if err := mount(c.root, spec, folders); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// expand exchanges $(NAME) for what the environment says.
func expand(text string, values map[string]string) string {
	for name, value := range values {
		text = strings.ReplaceAll(text, "$("+name+")", value)
	}
	return text
}

// start starts the process in the pod's network, in a process namespace of its own.
func (c *container) start(sandbox int) error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := &exec.Cmd{Path: c.path, Args: c.args, Env: c.env, Dir: "/", Stdout: log, Stderr: log,
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Chroot: c.root}}
	if s := c.spec.SecurityContext; s != nil && s.RunAsUser != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(*s.RunAsUser), NoSetGroups: true} //nolint:gosec // a user ID
		if s.RunAsGroup != nil {
			cmd.SysProcAttr.Credential.Gid = uint32(*s.RunAsGroup) //nolint:gosec // a group ID
		}
	}
	if err := within(sandbox, cmd.Start); err != nil {
		return err
	}
	if c.root != "" {
		if err := showProcesses(cmd.Process.Pid, c.root); err != nil {
			return err
		}
	}
	over := make(chan struct{})
	c.mu.Lock()
	c.cmd, c.over, c.began, c.started = cmd, over, time.Now(), c.spec.StartupProbe == nil
	c.mu.Unlock()
	go func() {
		err := cmd.Wait()
		c.mu.Lock()
		c.code, c.ran, c.ready, c.started = cmd.ProcessState.ExitCode(), true, false, false
		_ = err // the exit code says it
		c.mu.Unlock()
		close(over)
	}()
	return nil
}

// showProcesses mounts /proc for the process namespace of a container into its root; that of the
// process before is taken away.
func showProcesses(pid int, root string) error {
	at := filepath.Join(root, "proc")
	_ = syscall.Unmount(at, syscall.MNT_DETACH)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("nsenter", "--target", strconv.Itoa(pid), "--pid", "mount", "-t", "proc", "proc",
		at).CombinedOutput(); err != nil {
		return fmt.Errorf("mount /proc: %w: %s", err, out)
	}
	return nil
}

// within calls f in the network namespace of a process.
func within(pid int, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close()
	pods, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer pods.Close()
	if err := unix.Setns(int(pods.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the pod's network: %w", err)
	}
	err = f()
	return errors.Join(err, unix.Setns(int(own.Fd()), unix.CLONE_NEWNET))
}

func (c *container) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		_ = c.cmd.Process.Signal(s)
	}
}

// ended is closed when the process of now has ended; nil while there was none.
func (c *container) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// preStop runs the hook, for no longer than until gives; a sleep that is cut short is no error.
func (c *container) preStop(until <-chan struct{}) error {
	l := c.spec.Lifecycle
	if l == nil || l.PreStop == nil {
		return nil
	}
	if l.PreStop.Sleep != nil {
		t := time.NewTimer(time.Duration(l.PreStop.Sleep.Seconds) * time.Second)
		defer t.Stop()
		select {
		case <-t.C:
		case <-until:
		}
		return nil
	}
	if l.PreStop.Exec == nil {
		return errors.New("a preStop hook of a kind that this stand-in does not have")
	}
	c.mu.Lock()
	cmd := c.cmd
	c.mu.Unlock()
	if cmd == nil {
		return nil
	}
	args := []string{"--target", strconv.Itoa(cmd.Process.Pid), "--net", "--pid"}
	if c.root != "" {
		args = append(args, "--root="+c.root, "--wd=/")
	}
	if u := cmd.SysProcAttr.Credential; u != nil {
		args = append(args, "--setuid", strconv.Itoa(int(u.Uid)), "--setgid", strconv.Itoa(int(u.Gid)))
	}
	hook := exec.Command("nsenter", append(append(args, "--"), l.PreStop.Exec.Command...)...)
	if out, err := hook.CombinedOutput(); err != nil {
		return fmt.Errorf("preStop: %w: %s", err, out)
	}
	return nil
}

func (c *container) status() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := c.started
	s := corev1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, RestartCount: int32(c.restarts), Ready: c.ready, Started: &started} //nolint:gosec // few
	running := c.over != nil
	if running {
		select {
		case <-c.over:
			running = false
		default:
		}
	}
	switch {
	case running:
		s.State.Running = &corev1.ContainerStateRunning{}
		s.State.Running.StartedAt.Time = c.began
	case c.ran:
		s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(c.code), Reason: map[bool]string{true: "Completed", false: "Error"}[c.code == 0]} //nolint:gosec // 0 to 255
		s.State.Terminated.StartedAt.Time, s.State.Terminated.FinishedAt.Time = c.began, time.Now()
		s.Ready = c.code == 0 && !c.sidecar && s.Ready
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return s
}
