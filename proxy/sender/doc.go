// Package sender knows the webhook senders: where each one puts the event's ID, what it signs, how long it waits, what it
// sends again, and which answers make it give up.
//
// Each sender is one file: its preset, which says what a route should say for it, its signature, event ID, handshakes, sample, and what its
// page in the docs shows. To add one, add a file with a method of known; nothing else names it (test/arch holds that). What several senders
// share is beside them: body_mac.go, stamped.go, standard.go, json_members.go, form.go, keys.go. generic.go and jwt.go are for senders without a
// file; where their signatures are, and over what, is read by place.go and content.go, and a preset may be made of the same. handshake.go has the
// handshakes that the configuration describes.
//
// New builds a Verifier that checks a delivery's signature over the raw body; Diagnose says to a person why one is wrong. Usage judges a route. Presets lists the senders. Sample makes a signed delivery of a
// sender to try a route with.
//
// Everything here is a pure function of the delivery and of the time that the caller gives: no I/O, no clock, no state
// that a delivery could change. Keys come from the configuration alone; an address of a key that a delivery names is never
// used.
package sender
