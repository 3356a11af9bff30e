// Package naming names a delivery: its workflow, its event ID, its idempotency key and its
// fingerprint.
//
// A template is a text with sources in braces, {body.id ?? header.X-Id}; a Source is a place in a
// delivery; Keys are the templates of a route, and Names what they make of one delivery. A Message
// is a delivery as templates read it. A NameError says why a delivery cannot be named. Everything
// here is a pure function of the delivery. Package idem makes the decisions about names.
package naming
