//go:build linux

package kubelet

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is one that the scheduler has bound to the node.
type pod struct {
	k    *Kubelet
	spec *corev1.Pod // as it was when it was seen first
	ip   netip.Addr
	dir  string

	ending   chan struct{} // closed when it is to end
	patience time.Duration // valid when ending is closed
	killed   chan struct{} // closed when there is no time left

	endOnce, killOnce sync.Once

	mu     sync.Mutex
	inits  []*container
	mains  []*container
	waits  string // why nothing runs yet
	inited bool
	told   string // the last status that the API server has
	turned map[corev1.PodConditionType]turn
}

func newPod(k *Kubelet, o *corev1.Pod, ip netip.Addr) *pod {
	return &pod{k: k, spec: o.DeepCopy(), ip: ip, dir: filepath.Join(k.Dir, "pods", string(o.UID)),
		ending: make(chan struct{}), killed: make(chan struct{})}
}

func (p *pod) name() string { return p.spec.Namespace + "/" + p.spec.Name }

// field is what the downward API says.
func (p *pod) field(path string) string {
	switch path {
	case "metadata.name":
		return p.spec.Name
	case "metadata.namespace":
		return p.spec.Namespace
	case "status.podIP":
		return p.ip.String()
	}
	return ""
}

// end tells the pod that it is being deleted.
func (p *pod) end(seconds int64) {
	p.endOnce.Do(func() {
		p.patience = time.Duration(seconds) * time.Second
		close(p.ending)
	})
}

// kill leaves the pod no time.
func (p *pod) kill() {
	p.end(0)
	p.killOnce.Do(func() { close(p.killed) })
}

// run is the life of the pod; it returns when nothing of it is left.
func (p *pod) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	alive, die := context.WithCancel(ctx) // until the pod ends
	defer die()
	go func() {
		select {
		case <-p.ending:
			die()
		case <-alive.Done():
		}
	}()
	sandbox, err := p.sandbox()
	if err != nil {
		p.k.Say("%s: %v", p.name(), err)
		return
	}
	clean := sync.OnceFunc(func() {
		_ = sandbox.Process.Kill()
		_ = sandbox.Wait()
		p.unmount()
	})
	defer clean()
	var probes sync.WaitGroup
	begun := p.prepare(alive)
	if begun {
		begun = p.initialize(alive, sandbox.Process.Pid, &probes)
	}
	if begun {
		for _, c := range p.mains {
			p.keep(alive, c, sandbox.Process.Pid, &probes)
		}
		p.tell(ctx)
		if p.finished(alive) {
			p.k.Say("%s has done its work", p.name())
			p.endSidecars()
			probes.Wait()
			p.tell(ctx)
			return
		}
	}
	<-p.ending
	p.tell(ctx)
	p.terminate()
	die()
	probes.Wait()
	p.tell(ctx)
	clean() // a pod that comes in its place may have its address
	zero := int64(0)
	uid := p.spec.UID
	err = p.k.core.Pods(p.spec.Namespace).Delete(context.WithoutCancel(ctx), p.spec.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !errors.IsNotFound(err) && ctx.Err() == nil {
		p.k.Say("%s: delete: %v", p.name(), err)
	}
}

// prepare makes the containers, and tries again while something they need is not there.
func (p *pod) prepare(ctx context.Context) bool {
	for {
		err := os.MkdirAll(p.dir, 0o755)
		var folders map[string]string
		if err == nil {
			folders, err = p.volumes(ctx)
		}
		if err == nil {
			err = p.make(folders)
		}
		p.mu.Lock()
		p.waits = ""
		if err != nil {
			p.waits = err.Error()
		}
		p.mu.Unlock()
		if err == nil {
			return true
		}
		p.k.Say("%s waits: %v", p.name(), err)
		p.tell(ctx)
		p.unmount()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}

func (p *pod) make(folders map[string]string) error {
	var inits, mains []*container
	for i := range p.spec.Spec.InitContainers {
		spec := &p.spec.Spec.InitContainers[i]
		c, err := newContainer(p, spec, spec.RestartPolicy != nil &&
			*spec.RestartPolicy == corev1.ContainerRestartPolicyAlways, folders)
		if err != nil {
			return err
		}
		inits = append(inits, c)
	}
	for i := range p.spec.Spec.Containers {
		c, err := newContainer(p, &p.spec.Spec.Containers[i], false, folders)
		if err != nil {
			return err
		}
		mains = append(mains, c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inits, p.mains = inits, mains
	return nil
}

// unmount takes the volumes out of the containers' roots, and the roots away.
func (p *pod) unmount() {
	text, _ := os.ReadFile("/proc/self/mounts")
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], p.dir+"/") {
			_ = syscall.Unmount(f[1], syscall.MNT_DETACH)
		}
	}
	_ = os.RemoveAll(filepath.Join(p.dir, "roots"))
}

// sandbox is a process that does nothing in a network of its own, which is connected to the bridge
// under the pod's address.
func (p *pod) sandbox() (*exec.Cmd, error) {
	pause := exec.Command("sleep", "infinity")
	pause.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := pause.Start(); err != nil {
		return nil, err
	}
	if err := connect(pause.Process.Pid, p.k.Bridge, netip.PrefixFrom(p.ip, p.k.Pods.Bits()),
		p.k.Pods.Addr().Next()); err != nil {
		_ = pause.Process.Kill()
		_ = pause.Wait()
		return nil, err
	}
	return pause, nil
}

// initialize runs the init containers, one after the other: a sidecar until its startup probe has
// passed, another one to its end.
func (p *pod) initialize(ctx context.Context, sandbox int, probes *sync.WaitGroup) bool {
	for _, c := range p.inits {
		if c.sidecar {
			p.keep(ctx, c, sandbox, probes)
			if !until(ctx, func() bool { s := c.status(); return *s.Started && s.State.Running != nil }) {
				return false
			}
			p.tell(ctx)
			continue
		}
		for {
			if err := c.start(sandbox); err != nil {
				p.k.Say("%s %s: %v", p.name(), c.spec.Name, err)
				return false
			}
			p.tell(ctx)
			select {
			case <-c.ended():
			case <-ctx.Done():
				return false
			}
			if c.status().State.Terminated.ExitCode == 0 {
				break
			}
			p.k.Say("%s: the init container %s has failed; it comes again", p.name(), c.spec.Name)
			if !c.again(ctx) {
				return false
			}
		}
	}
	p.mu.Lock()
	p.inited = true
	p.mu.Unlock()
	return true
}

// keep starts a container, asks its probes, and starts it again where the pod says so, until ctx
// ends.
func (p *pod) keep(ctx context.Context, c *container, sandbox int, probes *sync.WaitGroup) {
	if err := c.start(sandbox); err != nil {
		p.k.Say("%s %s: %v", p.name(), c.spec.Name, err)
		return
	}
	probes.Go(func() { p.probe(ctx, c) })
	probes.Go(func() {
		for {
			select {
			case <-c.ended():
			case <-ctx.Done():
				return
			}
			code := c.status().State.Terminated.ExitCode
			if !c.sidecar && (p.spec.Spec.RestartPolicy == corev1.RestartPolicyNever ||
				p.spec.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && code == 0) {
				return
			}
			p.k.Say("%s: the container %s has ended with %d; it comes again", p.name(), c.spec.Name, code)
			p.tell(ctx)
			if !c.again(ctx) || c.start(sandbox) != nil {
				return
			}
			p.tell(ctx)
		}
	})
}

// again waits as a kubelet would before it starts a container once more.
func (c *container) again(ctx context.Context) bool {
	c.mu.Lock()
	c.restarts++
	pause := min(time.Duration(c.restarts)*time.Second, 10*time.Second)
	c.mu.Unlock()
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// finished waits until all containers have ended for good, and says whether they have; false: the
// pod is to end.
func (p *pod) finished(ctx context.Context) bool {
	return until(ctx, func() bool {
		for _, c := range p.mains {
			s := c.status().State.Terminated
			if s == nil || p.spec.Spec.RestartPolicy == corev1.RestartPolicyAlways ||
				s.ExitCode != 0 && p.spec.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
				return false
			}
		}
		return true
	})
}

// until asks check again and again; false: ctx has ended.
func until(ctx context.Context, check func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// tell writes the pod's status into the API server, if it is another one than before.
func (p *pod) tell(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status()
	text, err := json.Marshal(map[string]any{"status": s})
	if err != nil || string(text) == p.told {
		return
	}
	_, err = p.k.core.Pods(p.spec.Namespace).Patch(context.WithoutCancel(ctx), p.spec.Name,
		types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	switch {
	case err == nil:
		p.told = string(text)
	case !errors.IsNotFound(err) && ctx.Err() == nil:
		p.k.Say("%s: status: %v", p.name(), err)
	}
}
