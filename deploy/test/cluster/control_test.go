//go:build linux

package cluster

import (
	"strings"
	"testing"
)

func TestTheControlPlaneRuns(t *testing.T) {
	needs(t)
	said := run(t, ".", "default", "kubectl version && kubectl get nodes && helm version --short")
	for _, want := range []string{"Server Version: v" + Kubernetes, "node-1   Ready"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	t.Log(said)
}
