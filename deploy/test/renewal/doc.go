// Package renewal holds the signatures that proxy/sender makes anew against the libraries with
// which the senders tell a service to verify them: what came an hour ago is refused by them as too
// old, and what is sent instead is accepted.
package renewal
