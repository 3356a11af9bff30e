// Package behind starts real servers as the service behind a Hooklock, and looks whether a body
// that nothing reads ever becomes a request: each row of proxy/wire's known servers is measured
// here.
package behind
