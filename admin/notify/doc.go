// Package notify tells people what needs attention: when something begins, again while it lasts,
// and when it is over. One replica sends, and what was told is kept in the ledger.
//
// Words: an Item is one of package attention. A Receiver takes messages over HTTP. To tell is to
// send a message and to keep that it was sent.
package notify
