// Package kubelet stands in for a node of Kubernetes where there is no container engine: it
// registers a node, takes the pods that the scheduler binds to it, and runs their containers as
// processes, each pod in a network namespace of its own, each container in a process namespace and,
// where its image is given as files, in a root of its own. What it does of a kubelet's work is what
// rollouts depend on: the order of init containers, sidecars and containers, startup and readiness
// probes, preStop hooks, SIGTERM and patience, restarts, volumes from ConfigMaps and Secrets. It
// has neither exec nor logs, no liveness probes, and no limits of memory and CPU.
//
// Fewer parts do not show the same: a simulated node (kwok) runs no process, so no delivery would
// go through a rollout, and kind, k3s and the real kubelet need a container engine.
package kubelet
