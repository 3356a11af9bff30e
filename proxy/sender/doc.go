// Package sender knows the webhook senders: where each one puts the event's ID, what it signs, how long it waits, what it
// sends again, and which answers make it give up.
//
// It has three parts. New builds a Verifier that checks a delivery's signature over the raw body. Presets lists what a
// route should say for each sender. Sample makes a signed delivery of a sender to try a route with.
//
// Everything here is a pure function of the delivery and of the time that the caller gives: no I/O, no clock, no state
// that a delivery could change. Keys come from the configuration alone; an address of a key that a delivery names is never
// used.
package sender
