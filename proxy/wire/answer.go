package wire

// Answer is what the upstream answered. The zero value is ready; one that is used again keeps its memory. Everything in
// it is valid until the next exchange into it, and belongs to it.
type Answer struct {
	Status   int
	Reason   []byte  // as received, may be empty
	Fields   []Field // as received: order, spelling, duplicates
	Body     []byte  // whole, or the first bytes where Rest is not nil
	Whole    bool    // Body is the whole body
	Evidence Evidence
	// Length is the length of the whole body, -1 where it is not known before its end.
	Length int64
	// Rest delivers what follows Body. Not nil only where the body was not read whole; it must be closed.
	Rest *Rest
	// RequestPending: (Stream only) the sender's body was not yet sent whole when the answer began. The sender's
	// connection must be closed after this answer.
	RequestPending bool
}

// EndToEnd appends the fields that are not hop-by-hop, framing (Content-Length, Transfer-Encoding) excluded, to dst.
func (a *Answer) EndToEnd(dst []Field) []Field { return dst }

// Get returns the value of the first field of that name (any case), nil without one.
func (a *Answer) Get(name string) []byte { return nil }

// Rest is the part of an answer's body that was not read yet. Not safe for concurrent use, but for Close.
type Rest struct{}

// Read reads on. io.EOF means that the answer is whole; one that is cut off gives an error that is
// io.ErrUnexpectedEOF, or the cause of the context. Every error is a *SendError.
func (r *Rest) Read(p []byte) (int, error) { return 0, nil }

// Close ends the exchange: the connection goes back to the pool if the answer was read whole, else it is closed.
// Nothing of the exchange runs on afterwards. Closing twice is harmless.
func (r *Rest) Close() error { return nil }

// Evidence tells how far the exchange came by now.
func (r *Rest) Evidence() Evidence { return 0 }
