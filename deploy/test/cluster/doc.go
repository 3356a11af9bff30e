// Package cluster runs what stands in deploy/ for Kubernetes on a real control plane:
// kube-apiserver, kube-controller-manager and kube-scheduler, built from k8s.io/kubernetes, on an
// etcd of this project's version, with kubectl and helm; package kubelet stands in for the nodes,
// and starts Hooklock from the files of its image. `make test-cluster` runs it, apart from the
// other tests: it builds these programs the first time, which takes 15 minutes on two cores that
// are idle, and keeps them in the user's cache folder; then it takes some minutes.
//
// It needs Linux and root, for namespaces of network, processes and mounts; nothing outside of them
// is touched. Where it cannot have them, or a program cannot be built, the tests skip with the
// reason.
package cluster
