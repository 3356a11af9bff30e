package naming

import "bytes"

// NormalPath returns what a raw path means to a reader that normalizes it: percent-decoded once,
// segments without their ";params", no empty and "." segments, ".." resolved, no "/" at the end,
// `\` read as "/" (the WHATWG URL parser does, so Node.js may). A malformed escape stays as it is.
// The router compares it with the raw path to find deliveries that another reader would take for a
// covered path.
//
// The result is written over dst from its start, and grows it if needed; raw is not changed, and
// must not share memory with dst.
func NormalPath(raw, dst []byte) []byte {
	dst = dst[:0]
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' && i+2 < len(raw) && fromHex(raw[i+1]) >= 0 && fromHex(raw[i+2]) >= 0 {
			c = byte(fromHex(raw[i+1])<<4 | fromHex(raw[i+2]))
			i += 2
		}
		if c == '\\' {
			c = '/'
		}
		dst = append(dst, c)
	}
	return normalizeSegments(dst)
}

// normalizeSegments rewrites the segments of a decoded path in place. What is written never
// overtakes what is read, but for the "/" that a path without one gets in front.
func normalizeSegments(path []byte) []byte {
	if len(path) == 0 || path[0] != '/' {
		path = append(path, 0)
		copy(path[1:], path)
		path[0] = '/'
	}
	out := path[:0]
	for rest := path; len(rest) > 0; {
		rest = rest[1:] // the "/"
		segment := rest
		if end := bytes.IndexByte(rest, '/'); end >= 0 {
			segment = rest[:end]
		}
		rest = rest[len(segment):]
		segment, _, _ = bytes.Cut(segment, []byte{';'})
		switch string(segment) {
		case "", ".":
		case "..":
			out = out[:max(bytes.LastIndexByte(out, '/'), 0)]
		default:
			out = append(out, '/')
			out = append(out, segment...)
		}
	}
	if len(out) == 0 {
		return append(out, '/')
	}
	return out
}
