// Package test is a Go module of its own: what stands in deploy/ is run, or checked against the
// schemas of those who read it, with libraries that the product does not need. `make test-deploy`
// runs all of it.
package test
