//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe asks the startup probe of a container until it passes, and then the readiness probe for as
// long as ctx lives, also after a restart.
func (p *pod) probe(ctx context.Context, c *container) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	startup, readiness := c.spec.StartupProbe, c.spec.ReadinessProbe
	failed := 0
	for first := true; ; first = false {
		c.mu.Lock()
		started := c.started
		c.mu.Unlock()
		asked := readiness
		if !started {
			asked = startup
		}
		period := time.Second
		if asked != nil {
			period = time.Duration(max(1, asked.PeriodSeconds)) * time.Second
		}
		if asked == nil || first && asked.InitialDelaySeconds > 0 {
			c.turn(started, started)
		} else if err := p.ask(ctx, client, c, asked); err == nil {
			failed = 0
			c.turn(true, !(asked == startup && !started) || readiness == nil)
		} else if failed++; failed >= int(max(1, asked.FailureThreshold)) {
			c.turn(started, false)
		}
		p.tell(ctx)
		if !started && c.isStarted() {
			continue // the readiness probe comes at once
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(period):
		}
	}
}

// turn sets what the probes say, unless the process has ended meanwhile.
func (c *container) turn(started, ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.over:
		return
	default:
	}
	c.started, c.ready = started, ready
}

func (c *container) isStarted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

func (p *pod) ask(ctx context.Context, client *http.Client, c *container, probe *corev1.Probe) error {
	if probe.HTTPGet == nil {
		return nil // another kind: taken for passed
	}
	port := probe.HTTPGet.Port.IntVal
	if probe.HTTPGet.Port.Type == intstr.String {
		for _, named := range c.spec.Ports {
			if named.Name == probe.HTTPGet.Port.StrVal {
				port = named.ContainerPort
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, probe.TimeoutSeconds))*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s:%d%s", p.ip, port, probe.HTTPGet.Path), http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode >= 400 {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}
