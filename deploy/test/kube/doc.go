// Package kube renders what deploy/ has for Kubernetes, and asks about the result what an API
// server would say: the validation of Kubernetes itself, Pod Security at the level "restricted",
// and the definitions of custom resources. What a pod would run, it runs.
package kube
