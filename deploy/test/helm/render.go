package helm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Rendered is what `helm template` prints, and what `helm install` says at its end.
type Rendered struct {
	Manifests, Notes string
}

// Render is `helm template name chart -f values --namespace shop`, with the values checked against
// the chart's schema.
func Render(c *chart.Chart, name string, values map[string]any) (Rendered, error) {
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return Rendered{}, fmt.Errorf("process dependencies: %w", err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: name, Namespace: "shop", Revision: 1,
		IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return Rendered{}, fmt.Errorf("values: %w", err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return Rendered{}, fmt.Errorf("render: %w", err)
	}
	var r Rendered
	var manifests strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		switch {
		case strings.HasSuffix(path, "NOTES.txt"):
			r.Notes += files[path]
		case strings.TrimSpace(files[path]) != "":
			manifests.WriteString("---\n" + strings.TrimSpace(files[path]) + "\n")
		}
	}
	r.Manifests = manifests.String()
	return r, nil
}
