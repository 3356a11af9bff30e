// Package inject writes Hooklock into manifests of Kubernetes: `hooklock inject`. It is for clusters without the admission policy, and for
// those who do not use kustomize; what comes out is what the component in deploy/kubernetes makes, but for the port, which the Service chooses.
package inject
