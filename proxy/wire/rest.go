package wire

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

var errClosed = errors.New("answer was closed before its end")

// Rest is the part of an answer's body that was not read yet. It must be closed. Read is for one
// goroutine at a time; Close may be called from another one and wakes it, but not where the Call
// may have begun again by then.
type Rest struct {
	exchange *exchange

	mu   sync.Mutex // held while reading
	over atomic.Bool
	err  error // after the end
}

// Read reads on. io.EOF is the true end of the answer, and from then on the connection is free. An
// answer that is cut off gives a *SendError with io.ErrUnexpectedEOF, or with what ended it.
func (r *Rest) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over.Load() {
		return 0, r.err
	}
	n, err := r.exchange.rest.Read(p)
	switch {
	case r.exchange.rest.hasEnded():
		r.exchange.evidence = AnswerWhole
		doubt := r.exchange.checkParserAnswer()
		if r.endWith(true, io.EOF); doubt != nil {
			r.err = r.exchange.sendError(doubt)
		}
	case err != nil:
		if cause := r.exchange.Cause(); cause != nil {
			err = cause
		}
		r.endWith(false, err)
		r.err = r.exchange.sendError(asUnexpectedEOF(err))
	}
	if n > 0 {
		return n, nil
	}
	return n, r.err
}

func (r *Rest) endWith(whole bool, err error) {
	r.err = err
	r.exchange.releaseConn(whole)
	r.over.Store(true)
}

// Close ends the exchange. Before the end of the answer it closes the connection. When it returns,
// the sender's body is not read any more. Closing again is harmless.
func (r *Rest) Close() error {
	if r.over.Load() {
		return nil // the call may be another exchange's by now
	}
	r.exchange.Cancel(errClosed) // no effect on a connection that was given back
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over.Load() {
		r.endWith(false, errClosed)
	}
	return nil
}
