package proxy

import (
	"bytes"
	"io"

	"hooklock/proxy/wire"
)

// lentBody is the length from which an answer's body is accounted for until it was written. A
// shorter one fits into the buffers of fasthttp and of the kernel, so that its sender cannot make
// this process keep it.
const lentBody = 4 << 10

// takeAnswer moves the answer's body out of the delivery, whose own memory goes back to the pool,
// for the ledger, its cache, and the answer. One that the ledger will not keep is not copied.
func (a *attempt) takeAnswer() []byte {
	body := a.call.answer.Body
	if len(body) <= a.route.Policy.ReplayBody || len(body) <= lentBody {
		return bytes.Clone(body) // the cache counts its length
	}
	a.call.answer.Body = nil
	return body
}

// lendBody makes body, which does not belong to d any more, the answer's.
func (d *reply) lendBody(body []byte) {
	if len(body) < lentBody {
		d.ctx.Response.SetBodyRaw(body)
		return
	}
	b := &lent{rest: body, memory: d.handler.options.Budget.Open()}
	b.memory.Hold(cap(body))
	d.ctx.Response.SetBodyStream(b, len(body))
}

// lendAnswer is lendBody for an answer that is not kept.
func (d *reply) lendAnswer() {
	body := d.call.answer.Body
	if len(body) < lentBody {
		d.ctx.Response.SetBody(body)
		return
	}
	d.call.answer.Body = nil
	d.lendBody(body)
}

// lent is a body that fasthttp writes after the handler has returned. It is a stream because
// fasthttp reports only the end of a stream.
type lent struct {
	rest   []byte
	memory wire.Account
}

// Read implements io.Reader.
func (b *lent) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo: the body is written in one piece.
func (b *lent) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.rest)
	b.rest = b.rest[n:]
	return int64(n), err
}

// Close implements io.Closer; fasthttp calls it when the body was written, or could not be.
func (b *lent) Close() error {
	b.rest = nil
	b.memory.Close()
	return nil
}
