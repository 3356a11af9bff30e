//go:build linux

package kubelet

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// hosts stands in for the cluster's DNS: a file for each namespace, which is /etc/hosts in all of
// its containers, with the names of pods that a headless Service gives a name (hostname and
// subdomain).
type hosts struct{ dir string }

func (h *hosts) file(namespace string) string { return filepath.Join(h.dir, namespace) }

func (h *hosts) add(o *corev1.Pod, ip netip.Addr) {
	f, err := os.OpenFile(h.file(o.Namespace), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	if o.Spec.Subdomain != "" {
		short := o.Spec.Hostname + "." + o.Spec.Subdomain
		long := short + "." + o.Namespace + ".svc"
		fmt.Fprintf(f, "%s %s %s %s.cluster.local\n", ip, short, long, long)
	}
}
