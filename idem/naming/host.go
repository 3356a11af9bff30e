package naming

import "bytes"

// SplitHost returns the name and the port of a Host header. Neither the final dot, which means the
// root of all names, nor the port that http or https has by default makes another host. Which of
// the two a sender used is not known: behind an ingress each looks like http.
func SplitHost(host []byte) (name, port []byte) {
	name = host
	// an IPv6 address has colons of its own
	if i := bytes.LastIndexByte(host, ':'); i > bytes.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	if string(port) == "80" || string(port) == "443" {
		port = nil
	}
	return bytes.TrimSuffix(name, []byte{'.'}), port
}

// appendHost appends the one spelling of a host: in lower case, with its port if that is not the
// default.
func appendHost(dst, host []byte) []byte {
	name, port := SplitHost(host)
	dst = appendLower(dst, name)
	if len(port) > 0 {
		dst = append(append(dst, ':'), port...)
	}
	return dst
}
