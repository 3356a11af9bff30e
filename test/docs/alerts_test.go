package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false,
	"write the copies of the alerts in the chart and in the rule of the Prometheus operator")

const madeOfAlerts = "# Made of deploy/observability/alerts.yaml by `go test ./test/docs -run Alerts -update`.\n"

func TestTheChartAndTheRuleOfKubernetesHaveTheAlertsOfTheOneFile(t *testing.T) {
	_, groups, found := strings.Cut(fileOf(t, "deploy/observability/alerts.yaml"), "\ngroups:\n")
	if !found {
		t.Fatal("deploy/observability/alerts.yaml has no groups")
	}
	groups = "groups:\n" + groups
	for path, want := range map[string]string{
		"deploy/helm/hooklock/files/alerts.yaml": madeOfAlerts + groups,
		"deploy/kubernetes/prometheus-rule/prometheusrule.yaml": madeOfAlerts +
			"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: hooklock\nspec:\n" +
			regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(groups, "  $1"),
	} {
		if *update {
			if err := os.WriteFile(filepath.Join(root, path), []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if fileOf(t, path) != want {
			t.Errorf("%s is not deploy/observability/alerts.yaml: run `go test ./test/docs -run Alerts -update`", path)
		}
	}
}

// fileOf returns a file by its path from the root of the project.
func fileOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
