package wire

import (
	"errors"

	"github.com/valyala/fasthttp"
)

// Reasons why a request head is refused. Each of them is the sender's fault; none names a byte of the head.
var (
	ErrMethod     = errors.New("method is not proxied")                     // CONNECT, TRACE
	ErrVersion    = errors.New("HTTP version is neither 1.0 nor 1.1")       // also 1.2
	ErrTarget     = errors.New("request target is neither a path nor *")    // absolute form, authority form
	ErrLine       = errors.New("header line is not strictly formed")        // bare LF, obs-fold, space in a name
	ErrFraming    = errors.New("length of the request is ambiguous")        // CL and TE, two lengths, odd TE
	ErrHost       = errors.New("Host is missing, given twice or malformed") // RFC 9112 section 3.2
	ErrConnection = errors.New("Connection lists more than 16 names")       // each costs a pass over the head
)

// Field is one header line.
type Field struct {
	Name  []byte // as received
	Value []byte // without the white space around it
}

// Head is a validated request head. The zero value is ready for ParseHead; a Head that is used again allocates nothing.
type Head struct {
	raw    []byte
	fields []Field
}

// HeadOptions says how a head is rebuilt for the upstream. The zero value forwards a request without a body.
type HeadOptions struct {
	// Length is the number of body bytes that will be sent. It is declared where the sender declared a length or
	// chunks, and only there.
	Length int64
	// Streamed keeps the sender's own framing (its length, or chunks) instead of declaring Length.
	Streamed bool
	// Upgrade keeps the Upgrade lines and sends `Connection: Upgrade`.
	Upgrade bool
	// Host is sent where the sender gave none, which only HTTP/1.0 may.
	Host []byte
	// ForwardedFor is added to the last X-Forwarded-For line, or as a new one. Empty: nothing is added.
	ForwardedFor []byte
	// ForwardedProto and ForwardedHost are sent where the sender gave no such line. Empty: nothing is added.
	ForwardedProto, ForwardedHost []byte
	// Traceparent is sent where the sender gave no such line. Empty: nothing is added.
	Traceparent []byte
	// Extra is appended as it is: whole lines, each with its CRLF.
	Extra []byte
}

// ParseHead validates the head that h was parsed from and copies it into dst.
func ParseHead(h *fasthttp.RequestHeader, dst *Head) error { return nil }

// Method returns the method as received.
func (h *Head) Method() []byte { return nil }

// Target returns the request target as received.
func (h *Head) Target() []byte { return nil }

// HTTP10 reports whether the sender speaks HTTP/1.0.
func (h *Head) HTTP10() bool { return false }

// Fields returns all header lines in order, those that are not forwarded too. They point into h.
func (h *Head) Fields() []Field { return h.fields }

// HasBody reports whether the sender declared a body: a length above zero, or chunks.
func (h *Head) HasBody() bool { return false }

// Chunked reports whether the body comes in chunks.
func (h *Head) Chunked() bool { return false }

// Length returns the declared length, 0 without one, -1 for chunks.
func (h *Head) Length() int64 { return 0 }

// Upgrade returns the protocols that the sender offers to switch to (`Upgrade` confirmed by `Connection`), nil without.
func (h *Head) Upgrade() []byte { return nil }

// ExpectContinue reports whether the sender waits for 100 Continue.
func (h *Head) ExpectContinue() bool { return false }

// AppendTo appends the head for the upstream to dst, up to and with the empty line.
func (h *Head) AppendTo(dst []byte, o HeadOptions) []byte { return dst }
