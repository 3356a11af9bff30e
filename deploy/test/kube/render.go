package kube

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Kustomize is what `kubectl kustomize dir` prints.
func Kustomize(dir string) (string, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // kubectl's
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return "", fmt.Errorf("kustomize %s: %w", dir, err)
	}
	text, err := built.AsYaml()
	return string(text), err
}
