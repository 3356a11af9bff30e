// Package serve runs Hooklock: Start opens everything or nothing, in the order in which it is needed, and Stop closes it the other way round.
//
// service.go has that order, api.go the admin side, log.go the log of a server, demo.go the whole thing with a receiver to try it on.
package serve
