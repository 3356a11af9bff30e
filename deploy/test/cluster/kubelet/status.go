//go:build linux

package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// status is what the API server is told. The caller holds p.mu.
func (p *pod) status() corev1.PodStatus {
	s := corev1.PodStatus{Phase: corev1.PodPending, HostIP: p.k.Pods.Addr().Next().String()}
	s.HostIPs = []corev1.HostIP{{IP: s.HostIP}}
	s.PodIP = p.ip.String()
	s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	ready, over, failed := p.inited, len(p.mains) > 0, false
	for _, c := range p.inits {
		status := c.status()
		s.InitContainerStatuses = append(s.InitContainerStatuses, status)
		ready = ready && (!c.sidecar || status.Ready)
	}
	for _, c := range p.mains {
		status := c.status()
		s.ContainerStatuses = append(s.ContainerStatuses, status)
		ready = ready && status.Ready
		if t := status.State.Terminated; t == nil {
			over = false
		} else if t.ExitCode != 0 {
			failed = true
		}
	}
	if p.inited {
		s.Phase = corev1.PodRunning
	}
	if over && p.spec.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		switch {
		case !failed:
			s.Phase = corev1.PodSucceeded
		case p.spec.Spec.RestartPolicy == corev1.RestartPolicyNever:
			s.Phase = corev1.PodFailed
		}
	}
	s.Message = p.waits
	condition := func(kind corev1.PodConditionType, holds bool) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse}
		if holds {
			c.Status = corev1.ConditionTrue
		}
		c.LastTransitionTime.Time = p.since(kind, c.Status)
		s.Conditions = append(s.Conditions, c)
	}
	condition(corev1.PodInitialized, p.inited)
	condition(corev1.ContainersReady, ready)
	condition(corev1.PodReady, ready)
	return s
}

// since is when a condition has turned to what it is. The caller holds p.mu.
func (p *pod) since(kind corev1.PodConditionType, is corev1.ConditionStatus) time.Time {
	if p.turned == nil {
		p.turned = map[corev1.PodConditionType]turn{}
	}
	if t, known := p.turned[kind]; known && t.to == is {
		return t.at
	}
	p.turned[kind] = turn{is, time.Now().Truncate(time.Second)}
	return p.turned[kind].at
}

type turn struct {
	to corev1.ConditionStatus
	at time.Time
}
