// Package wire carries one HTTP/1.1 exchange to the upstream and back: exact to the byte, at most
// once, and with evidence of how far it came.
//
// A request head is rebuilt from the bytes that the sender sent (Head), so names, case, order and
// spacing arrive unchanged; what two HTTP parsers could read differently is refused, in the head by
// Head, in lines and chunks by the Listener. An Upstream is a pool of connections to one address.
// It makes one attempt, and a second one only with proof that the peer never had a byte of the
// first. Answers are parsed strictly, and a cut-off one is never taken for a whole one. Send
// buffers request and answer, Stream passes both through, Upgrade and Tunnels turn the connection
// over to another protocol.
//
// The package knows no routes, no locks and no decisions.
//
// Words: an exchange is one request and its answer on a connection; Evidence is how far it came; a
// Rest is the part of an answer that was not read yet. A Budget bounds the bytes of all bodies, an
// Account is what one delivery has of it. A Pace is how slowly a peer may go. A connection is set
// aside between two requests, without its buffers, and switched, or a tunnel, when a 101 took it
// out of HTTP.
package wire
