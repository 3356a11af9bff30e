// Package suggest finds out of deliveries what names an event, what its workflow is, and what the
// sender changes between attempts. It keeps keyed hashes of the members of a delivery and no value,
// in bounded memory, and rather says that it does not know than guesses.
package suggest
