// Package inject writes Hooklock into manifests of Kubernetes: `hooklock inject`. It is for
// clusters without the admission policy or kustomize. The result is that of the component in
// deploy/kubernetes, except for the port, which the Service names.
package inject
