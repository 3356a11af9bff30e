//go:build linux

package kubelet

import (
	"slices"
	"sync"
	"syscall"
	"time"
)

// leastPatience is what a sidecar gets when the containers have used up everything: the kubelet's
// own number.
const leastPatience = 2 * time.Second

// terminate ends the pod as a kubelet of 1.36 does: all preStop hooks begin at once; a container
// gets SIGTERM when its hook is done, sidecars when all containers have ended, the last one first.
// Whoever is left when the patience is over is killed.
func (p *pod) terminate() {
	began := time.Now()
	over := make(chan struct{})
	timer := time.AfterFunc(p.patience, func() { close(over) })
	defer timer.Stop()
	go func() {
		select {
		case <-p.killed:
			if timer.Stop() {
				close(over)
			}
		case <-over:
		}
	}()
	var mains, hooks sync.WaitGroup
	for _, c := range p.mains {
		mains.Go(func() { p.hook(c, over); stop(c, over) })
	}
	var sidecars []*container
	for _, c := range p.inits {
		if c.sidecar {
			sidecars = append(sidecars, c)
			hooks.Go(func() { p.hook(c, over) })
		} else {
			c.signal(syscall.SIGKILL)
		}
	}
	mains.Wait()
	hooks.Wait()
	last := make(chan struct{})
	left := time.AfterFunc(max(p.patience-time.Since(began), leastPatience), func() { close(last) })
	defer left.Stop()
	for _, c := range slices.Backward(sidecars) {
		stop(c, last)
	}
	p.k.Say("%s has ended after %v", p.name(), time.Since(began).Round(100*time.Millisecond))
}

// endSidecars is for a pod whose containers have done their work.
func (p *pod) endSidecars() {
	over := make(chan struct{})
	defer time.AfterFunc(leastPatience, func() { close(over) }).Stop()
	for _, c := range slices.Backward(p.inits) {
		if c.sidecar {
			stop(c, over)
		}
	}
}

func (p *pod) hook(c *container, over <-chan struct{}) {
	if err := c.preStop(over); err != nil {
		p.k.Say("%s %s: %v", p.name(), c.spec.Name, err)
	}
}

// stop ends a process, with SIGKILL when over is closed.
func stop(c *container, over <-chan struct{}) {
	ended := c.ended()
	if ended == nil {
		return
	}
	c.signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-over:
		c.signal(syscall.SIGKILL)
		<-ended
	}
}
