// Package checks tests what is in deploy/ and is no Go: the systemd unit, the Dockerfile, the
// compose file.
package checks
