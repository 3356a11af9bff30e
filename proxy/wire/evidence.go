package wire

import "fmt"

// Evidence says how far an exchange with the upstream came. The values are ordered: each one
// includes those before it.
type Evidence uint8

// What is known, from nothing to everything.
const (
	NotDialled  Evidence = iota // there was no usable connection
	Dialled                     // connected, but provably no byte of the request reached the peer
	HeadWritten                 // at least one byte of the request was handed to the kernel
	BodyWritten                 // every byte of the request was handed to the kernel
	AnswerBegun                 // at least one byte came back
	AnswerWhole                 // the answer came back whole
)

// String returns a short phrase for logs.
func (e Evidence) String() string {
	switch e {
	case NotDialled:
		return "not dialled"
	case Dialled:
		return "dialled"
	case HeadWritten:
		return "head written"
	case BodyWritten:
		return "body written"
	case AnswerBegun:
		return "answer begun"
	case AnswerWhole:
		return "answer whole"
	}
	return fmt.Sprintf("evidence %d", uint8(e))
}

// Sent reports whether the upstream may have any byte of the request. False is a proof, true is
// only a possibility.
func (e Evidence) Sent() bool { return e >= HeadWritten }

// SendError is the error of an exchange that did not end with a whole answer.
type SendError struct {
	Evidence Evidence
	Timeout  bool  // the connect timeout, or a deadline of the context, passed
	Err      error // the cause: of the context where that ended the exchange, else the I/O or protocol error
}

// Error names the cause and how far the exchange came.
func (e *SendError) Error() string {
	return fmt.Sprintf("exchange with the upstream (%s): %v", e.Evidence, e.Err)
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// Sent reports whether the upstream may have any byte of the request.
func (e *SendError) Sent() bool { return e.Evidence.Sent() }
