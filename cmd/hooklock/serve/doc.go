// Package serve runs Hooklock: Start opens everything or nothing, in the order in which it is needed, and Stop closes it the other way round.
//
// service.go has that order, api.go the admin side, log.go the log of a server, demo.go the whole thing with a receiver to try it on.
//
// Words: a Service is a running Hooklock, its door the listener for senders. A closer ends one of its parts. To drain is to take no more deliveries
// and to let those that run end. The supervisor is systemd, or whatever hears of its protocol.
package serve
