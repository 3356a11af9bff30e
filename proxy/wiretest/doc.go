// Package wiretest is an upstream for tests that speaks in raw bytes: it keeps exactly what it
// received, and says exactly what the test wrote, including what no HTTP server would say.
package wiretest
