// Package kubernetes is the container that manifests get, as the component in the folder sidecar
// has it, for `hooklock inject`.
package kubernetes

import _ "embed"

// Container is sidecar/container.yaml: a Deployment with nothing in it but what Hooklock adds to
// one.
//
//go:embed sidecar/container.yaml
var Container []byte
