// Package suggest finds out of deliveries what names an event, what its workflow is, and what the
// sender changes between attempts. It keeps keyed hashes of the members of a delivery, in bounded
// memory, and no value but the names of at most four subscriptions in a header. It rather says that
// it does not know than guesses.
package suggest
