package wire

import "strconv"

// HeadOptions says how a head is rebuilt for the upstream. The zero value forwards a request whose
// body is empty.
type HeadOptions struct {
	// Length is the number of body bytes that will be sent. It is declared where the sender
	// declared a length or chunks, in the same place, and only there.
	Length int64
	// Streamed keeps the sender's framing, its length or chunks, and ignores Length.
	Streamed bool
	// Upgrade keeps the Upgrade lines and sends `Connection: Upgrade`, if Head.Upgrade is not nil.
	Upgrade bool
	// Close sends `Connection: close`, but for an Upgrade.
	Close bool
	// Host is sent where the sender gave none, which only HTTP/1.0 may.
	Host []byte
	// ForwardedFor is added to the last X-Forwarded-For line, or as a line where there is none.
	// Empty adds nothing.
	ForwardedFor []byte
	// ForwardedProto and ForwardedHost are sent where the sender gave no such line. Empty adds
	// nothing.
	ForwardedProto, ForwardedHost []byte
	// Traceparent is sent where the sender gave no such line. Empty adds nothing.
	Traceparent []byte
	// OwnTrace puts Traceparent in the place of the sender's, for a proxy that is a part of the
	// trace itself.
	OwnTrace bool
	// Extra is appended as it is: whole lines, each with its CRLF, as AppendField makes them.
	Extra []byte
}

// Size returns about how many bytes AppendRaw appends.
func (h *Head) Size() int { return len(h.buf) }

// AppendRaw appends request line and header lines as they were received, with the empty line behind
// them.
func (h *Head) AppendRaw(dst []byte) []byte {
	version := " HTTP/1.1\r\n"
	if h.http10 {
		version = " HTTP/1.0\r\n"
	}
	dst = append(append(append(dst, h.method...), ' '), h.target...)
	dst = append(dst, version...)
	for _, l := range h.lines {
		dst = append(append(dst, l.whole...), "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// AppendTo appends the head for the upstream to dst, up to and with the empty line. Each end-to-end
// line is what the sender sent, byte for byte and in its order. Dropped are hop-by-hop lines,
// Expect, and what could be read as Hooklock-* or Proxy; nothing is added but what o says.
func (h *Head) AppendTo(dst []byte, o HeadOptions) []byte {
	dst = append(append(append(dst, h.method...), ' '), h.target...)
	dst = append(dst, " HTTP/1.1\r\n"...)
	if !h.hasHost {
		dst = appendLine(dst, "Host", o.Host)
	}
	o.Upgrade = o.Upgrade && h.upgrade != nil
	announced := false
	for i := range h.lines {
		if h.lines[i].kind != kindConnection {
			dst = h.appendChanged(dst, i, &o)
		} else if o.Upgrade && !announced { // in the place of the first line
			dst, announced = append(dst, "Connection: Upgrade\r\n"...), true
		}
	}
	if o.Close && !o.Upgrade {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = h.appendAbsent(dst, &o)
	dst = append(dst, o.Extra...)
	return append(dst, "\r\n"...)
}

// appendChanged appends what becomes of a line of the sender's.
func (h *Head) appendChanged(dst []byte, i int, o *HeadOptions) []byte {
	switch h.lines[i].kind {
	case kindDropped, kindExpect:
		return dst
	case kindUpgrade:
		if !o.Upgrade {
			return dst
		}
	case kindLength:
		return h.appendLength(dst, i, o)
	case kindChunked:
		return h.appendChunked(dst, i, o)
	case kindTraceparent:
		if o.OwnTrace {
			return appendLine(dst, h.fields[i].Name, o.Traceparent)
		}
	case kindForwardedFor:
		if i == h.lastForward && len(o.ForwardedFor) > 0 {
			return h.appendForwardedFor(dst, i, o.ForwardedFor)
		}
	}
	return append(append(dst, h.lines[i].whole...), "\r\n"...)
}

// appendAbsent adds what o gives and the sender did not.
func (h *Head) appendAbsent(dst []byte, o *HeadOptions) []byte {
	if len(o.ForwardedFor) > 0 && h.lastForward < 0 {
		dst = appendLine(dst, "X-Forwarded-For", o.ForwardedFor)
	}
	if len(o.ForwardedProto) > 0 && !h.proto {
		dst = appendLine(dst, "X-Forwarded-Proto", o.ForwardedProto)
	}
	if len(o.ForwardedHost) > 0 && !h.host {
		dst = appendLine(dst, "X-Forwarded-Host", o.ForwardedHost)
	}
	if len(o.Traceparent) > 0 && !h.traced {
		dst = appendLine(dst, "Traceparent", o.Traceparent)
	}
	return dst
}

// appendLength declares the length under the name that the sender wrote. The whole line stays where
// it already says this plainly; 003 and odd white space do not reach the upstream.
func (h *Head) appendLength(dst []byte, i int, o *HeadOptions) []byte {
	n := o.Length
	if o.Streamed {
		n = h.length
	}
	dst = append(dst, h.fields[i].Name...)
	dst = append(dst, ':')
	if after := h.lines[i].whole[len(h.fields[i].Name)+1:]; after[0] == ' ' {
		dst = append(dst, ' ')
	}
	return append(strconv.AppendInt(dst, n, 10), "\r\n"...)
}

// appendChunked puts the length where Transfer-Encoding stood, or keeps the chunks of a streamed
// body.
func (h *Head) appendChunked(dst []byte, i int, o *HeadOptions) []byte {
	if o.Streamed {
		return append(append(dst, h.fields[i].Name...), ": chunked\r\n"...)
	}
	dst = append(dst, "Content-Length: "...)
	return append(strconv.AppendInt(dst, o.Length, 10), "\r\n"...)
}

// appendForwardedFor adds the address behind the value and leaves the rest of the line alone.
func (h *Head) appendForwardedFor(dst []byte, i int, addr []byte) []byte {
	whole, f := h.lines[i].whole, h.fields[i]
	if len(f.Value) == 0 {
		return appendLine(dst, f.Name, addr)
	}
	end := len(whole)
	for whole[end-1] == ' ' || whole[end-1] == '\t' {
		end--
	}
	dst = append(append(append(dst, whole[:end]...), ", "...), addr...)
	return append(append(dst, whole[end:]...), "\r\n"...)
}

// AppendField appends one header line with its CRLF. Values may come from a sender's path or body,
// so what no value may hold (control bytes: a CR LF would begin another line) and what no header
// says alike everywhere (bytes beyond ASCII) goes out as %XX; a '%' itself stays.
func AppendField(dst []byte, name string, value []byte) []byte {
	const digits = "0123456789ABCDEF"
	dst = append(append(dst, name...), ": "...)
	for _, c := range value {
		if c < ' ' || c >= 0x7f {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, "\r\n"...)
}

func appendLine[Name string | []byte](dst []byte, name Name, value []byte) []byte {
	dst = append(append(append(dst, name...), ": "...), value...)
	return append(dst, "\r\n"...)
}
