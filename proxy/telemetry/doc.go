// Package telemetry makes a process observable: metrics on a page for Prometheus and over OTLP, a
// trace for each delivery, and a line in the log for each delivery and each event. It is the
// proxy.Observer and the proxy.Tracer of production.
//
// No label holds anything that a sender chose: routes have the names of the configuration, a pause
// that of its scope, which an operator wrote, and everything else comes from a closed set.
// docs/metrics.md and docs/logs.md list all of it, and tests keep them equal to this package.
//
// Words: an instrument is updated where something happens, what is Watched is read when metrics are
// collected. A zero is a series that is shown before anything was measured. An event is a line of
// the log that is about no single delivery. To scrub a text is to remove what may be a secret.
package telemetry
