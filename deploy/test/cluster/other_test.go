//go:build !linux

package cluster

import "testing"

func TestTheControlPlaneRuns(t *testing.T) { t.Skip("namespaces for pods need Linux and root") }
