// Package testkit is what tests from outside need: it builds and starts the program and etcd
// members as processes that die with the test, waits for what they say, records what reaches an
// upstream, and speaks to the proxy in raw bytes.
//
// Everything that it starts ends with the test that started it, and is waited for. Nothing here
// knows how Hooklock works inside.
package testkit
