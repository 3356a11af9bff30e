// Package serve runs Hooklock: Start opens everything or nothing, in the order in which it is
// needed, and Stop closes it the other way round.
//
// service.go has that order, admin_api.go the admin side, server_log.go the log of a server,
// demo.go the whole thing with a receiver to try it on.
//
// A Service is a running Hooklock, its door the listener for senders. A closer stops one of its
// parts. To drain is to take no more deliveries and to let the running ones end. The supervisor is
// systemd, or another program with its protocol.
package serve
