// Package sender describes the webhook senders: where each puts the event ID, what it signs, how
// long it waits, what it sends again, and which answers make it give up.
//
// New builds a Verifier, which checks the signature of a delivery over the raw body. Diagnose
// explains why a signature is wrong. Usage checks the settings of a route. Presets lists the
// senders. Sample makes a signed delivery to try a route with.
//
// Each sender has one file with its preset, signature, event ID, handshakes, sample and the text of
// its page. To add one, add a file with a method of known; nothing else names it (test/arch checks
// that). body_mac.go, stamped.go, standard.go, json_members.go, form_parts.go and keys.go hold what
// senders share. generic.go and jwt.go are for senders without a file; place.go and content.go read
// where a signature is and what it covers. handshake.go implements the handshakes of the
// configuration.
//
// Every function here is pure: it depends on the delivery and on the time that the caller passes.
// There is no I/O, no clock, and no state that a delivery could change. Keys come from the
// configuration only; an address of a key in a delivery is never used.
package sender
