// Package locker is a lock for callers that have no event: Go programs, and clients of the lock
// API.
package locker
