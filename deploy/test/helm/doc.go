// Package helm lints and renders the charts in deploy/helm with Helm's own code, and asks of the
// result what package kube asks.
package helm
