package wire

import (
	"bytes"
	"errors"
	"slices"

	"github.com/valyala/fasthttp"
)

// Reasons why a request head is refused. Each is the sender's fault, and its text tells no byte of
// the head.
var (
	ErrMethod = errors.New("method is not proxied: CONNECT and TRACE are for proxies and debuggers, not for " +
		"upstreams")
	ErrVersion    = errors.New("HTTP version is neither 1.0 nor 1.1")
	ErrTarget     = errors.New("request target is neither a path in ASCII without # nor, for OPTIONS, *")
	ErrLine       = errors.New("header line is not strictly formed")
	ErrFraming    = errors.New("length of the request body can be read in two ways")
	ErrHost       = errors.New("Host is missing or given twice")
	ErrConnection = errors.New("Connection lists more than 16 names")
)

// maxListed bounds the names in Connection: each costs a look at every line.
const maxListed = 16

// Field is one header line.
type Field struct {
	Name  []byte // as received
	Value []byte // without the white space around it
}

// Head is the validated head of one request. The zero value is ready for ParseHead; one that is
// used again allocates nothing. It owns its bytes, so it outlives the handler that parsed it.
type Head struct {
	buf    []byte // method, target and header block
	method []byte
	target []byte
	fields []Field
	lines  []line // parallel to fields

	bodyFraming
	http10      bool
	hasHost     bool
	expects     bool
	proto       bool     // X-Forwarded-Proto is there
	host        bool     // X-Forwarded-Host is there
	traced      bool     // traceparent is there
	lastForward int      // index of the last X-Forwarded-For, -1 without
	upgrade     []byte   // nil: nothing that could be tunnelled is offered
	listed      [][]byte // by Connection
}

type line struct {
	whole []byte // without CRLF
	kind  kind
}

// ParseHead validates the head that h was read from and copies it into dst. It reads
// h.RawHeaders(), the exact block that was received, and accepts less than fasthttp does: what two
// parsers could read differently is an error, one of those above. dst is of no use after an error.
func ParseHead(h *fasthttp.RequestHeader, dst *Head) error {
	*dst = Head{buf: dst.buf[:0], fields: dst.fields[:0], lines: dst.lines[:0], listed: dst.listed[:0], lastForward: -1}
	method, target, block := h.Method(), h.RequestURI(), h.RawHeaders()
	if err := checkRequestLine(method, target, h.Protocol()); err != nil {
		return err
	}
	dst.buf = append(append(append(dst.buf, method...), target...), block...)
	dst.method = dst.buf[:len(method):len(method)]
	dst.target = dst.buf[len(method) : len(method)+len(target) : len(method)+len(target)]
	dst.http10 = string(h.Protocol()) == "HTTP/1.0"
	if err := dst.parseBlock(dst.buf[len(method)+len(target):]); err != nil {
		return err
	}
	return dst.checkWhole()
}

func checkRequestLine(method, target, protocol []byte) error {
	if string(protocol) != "HTTP/1.1" && string(protocol) != "HTTP/1.0" {
		return ErrVersion
	}
	if !isToken(method) {
		return ErrLine
	}
	if equalFold(method, "connect") || equalFold(method, "trace") { // some servers fold the case of methods
		return ErrMethod
	}
	for _, c := range target {
		if c <= ' ' || c >= 0x7f { // a byte above ASCII is a letter to one reader and white space (0xA0) to another
			return ErrTarget
		}
	}
	// A fragment is never sent (RFC 9112, 3.2). nginx, Express and gunicorn cut it off:
	// "/guarded#x" would be another path here and the guarded one there. Behind the path it changes
	// nothing that is decided here.
	if path, _, _ := bytes.Cut(target, []byte{'?'}); bytes.IndexByte(path, '#') >= 0 {
		return ErrTarget
	}
	if len(target) == 0 || target[0] != '/' && !(string(target) == "*" && string(method) == "OPTIONS") {
		return ErrTarget
	}
	return nil
}

// parseBlock splits the header block, which ends with an empty line. An empty block is an HTTP/1.0
// request without any header.
func (h *Head) parseBlock(block []byte) error {
	for len(block) > 0 {
		end := bytes.IndexByte(block, '\n')
		if end < 1 || block[end-1] != '\r' {
			return ErrLine // bare LF
		}
		whole := block[: end-1 : end-1]
		block = block[end+1:]
		if len(whole) == 0 {
			if len(block) > 0 {
				return ErrLine
			}
			break
		}
		if err := h.addLine(whole); err != nil {
			return err
		}
	}
	return nil
}

func (h *Head) addLine(whole []byte) error {
	f, ok := splitLine(whole)
	if !ok {
		return ErrLine
	}
	k := kindOf(f.Name)
	h.fields = append(h.fields, f)
	h.lines = append(h.lines, line{whole, k})
	switch k {
	case kindLength, kindChunked, kindAlias:
		if k == kindChunked && h.http10 {
			return ErrFraming
		}
		return h.addField(k, f.Value)
	case kindHost:
		if h.hasHost {
			return ErrHost
		}
		h.hasHost = true
	case kindConnection:
		return h.addListed(f.Value)
	case kindForwardedFor:
		h.lastForward = len(h.lines) - 1
	case kindForwardedProto:
		h.proto = true
	case kindForwardedHost:
		h.host = true
	case kindExpect:
		h.expects = h.expects || equalFold(f.Value, "100-continue")
	}
	return nil
}

// splitLine splits a header line, strictly.
func splitLine(whole []byte) (Field, bool) {
	colon := bytes.IndexByte(whole, ':')
	if colon < 0 || !isToken(whole[:colon]) || !isText(whole[colon+1:]) {
		return Field{}, false
	}
	value := trimSpace(whole[colon+1:])
	return Field{whole[:colon:colon], slices.Clip(value)}, true
}

func (h *Head) addListed(list []byte) error {
	for len(list) > 0 {
		var name []byte
		if name, list = nextListed(list); len(name) == 0 {
			continue
		}
		if len(h.listed) == maxListed {
			return ErrConnection
		}
		h.listed = append(h.listed, name)
	}
	return nil
}

// checkWhole does what needs all lines.
func (h *Head) checkWhole() error {
	if !h.hasHost && !h.http10 {
		return ErrHost
	}
	upgrades := false
	for _, name := range h.listed {
		switch {
		case equalFold(name, "upgrade"):
			upgrades = true
		case equalFold(name, "close"), equalFold(name, "keep-alive"):
		default:
			h.dropListed(name)
		}
	}
	offered := false // looked at before the verdict: every Upgrade line must be harmless
	for i, l := range h.lines {
		switch l.kind {
		case kindTraceparent:
			h.traced = true
		case kindUpgrade:
			value := h.fields[i].Value
			if !mayTunnel(value) {
				upgrades = false
			}
			if !offered {
				offered, h.upgrade = true, value
			}
		}
	}
	if !upgrades || h.http10 { // RFC 9110 section 7.8: ignored in HTTP/1.0, and without Connection: upgrade
		h.upgrade = nil
	}
	return nil
}

// dropListed drops the lines that Connection declares to be for this connection only. Lines on
// which others rely (kindHost and so on, kindKept) are not the sender's to take away.
func (h *Head) dropListed(name []byte) {
	for i := range h.lines {
		k := h.lines[i].kind
		if (k == kindPlain || k == kindTraceparent) && bytes.EqualFold(h.fields[i].Name, name) {
			h.lines[i].kind = kindDropped
		}
	}
}

// mayTunnel reports whether the listed protocols may be switched to. A tunnel that speaks HTTP
// again would carry deliveries past Hooklock (h2c smuggling), and TLS would hide them.
func mayTunnel(protocols []byte) bool {
	some := false
	for len(protocols) > 0 {
		var p []byte
		p, protocols = nextListed(protocols)
		name, _, _ := bytes.Cut(p, []byte("/"))
		if len(p) == 0 {
			continue
		}
		if !isToken(name) || equalFold(name, "h2c") || equalFold(name, "h2") || equalFold(name, "http") ||
			equalFold(name, "tls") {
			return false
		}
		some = true
	}
	return some
}

// Method returns the method as received.
func (h *Head) Method() []byte { return h.method }

// Target returns the request target as received: a path with its query, or *.
func (h *Head) Target() []byte { return h.target }

// HTTP10 reports whether the sender speaks HTTP/1.0.
func (h *Head) HTTP10() bool { return h.http10 }

// Fields returns every header line in the received order, those too that are not forwarded. They
// point into h and are valid until it is parsed again.
func (h *Head) Fields() []Field { return h.fields }

// SetValue puts another value into the line of Fields()[at] and leaves the rest of the line alone:
// the name as it is spelled, and the white space. It is for lines that go through unread, such as a
// signature: what was read of this one is not read again. The value is one that a header may hold,
// without white space around it.
func (h *Head) SetValue(at int, value []byte) {
	f, whole := &h.fields[at], h.lines[at].whole
	rest := whole[len(f.Name)+1:]
	begin := len(whole) - len(bytes.TrimLeft(rest, " \t"))
	end := begin + len(f.Value)
	line := append(append(append(make([]byte, 0, len(whole)+len(value)), whole[:begin]...), value...), whole[end:]...)
	h.lines[at].whole = line
	*f = Field{line[:len(f.Name):len(f.Name)], line[begin : begin+len(value) : begin+len(value)]}
}

func fieldValue(fields []Field, name string) []byte {
	for _, f := range fields {
		if equalFold(f.Name, name) {
			return f.Value
		}
	}
	return nil
}

// HasBody reports whether a body follows: a declared length above zero, or chunks.
func (h *Head) HasBody() bool { return h.length != 0 }

// Upgrade returns the protocols that the sender offers to switch to, as received: `Upgrade`,
// confirmed by `Connection`. Nil without, and for protocols that are never tunnelled (h2c, HTTP,
// TLS): their lines are dropped.
func (h *Head) Upgrade() []byte { return h.upgrade }
