//go:build !race

package testkit

// Race says that the tests run with the race detector; Build then builds with it, too.
const Race = false
