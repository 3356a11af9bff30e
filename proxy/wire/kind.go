package wire

// kind says what happens to a header line on its way to the upstream.
type kind uint8

const (
	kindPlain          kind = iota
	kindKept                // plain, and Connection cannot drop it
	kindDropped             // for this connection only, or not the sender's to say
	kindLength              // Content-Length
	kindChunked             // Transfer-Encoding
	kindAlias               // a CGI program could read it as one of these two
	kindHost                // exactly one
	kindConnection          // names lines to drop
	kindUpgrade             // kept for a tunnel only
	kindExpect              // answered here
	kindForwardedFor        // gets the sender's address
	kindForwardedProto      // added where absent
	kindForwardedHost       // added where absent
	kindTraceparent         // added where absent
)

// kindOf classifies a request line by its name.
func kindOf(name []byte) kind {
	if isReserved(name) {
		return kindDropped
	}
	switch len(name) {
	case 2:
		return kindIfNamed(name, "te", kindDropped)
	case 4:
		return kindIfNamed(name, "host", kindHost)
	case 5:
		return kindIfNamed(name, "proxy", kindDropped) // would be HTTP_PROXY to a CGI program
	case 6:
		if equalFold(name, "cookie") {
			return kindKept
		}
		return kindIfNamed(name, "expect", kindExpect)
	case 7:
		if equalFold(name, "upgrade") {
			return kindUpgrade
		}
		return kindIfNamed(name, "trailer", kindDropped)
	case 10:
		if equalFold(name, "connection") {
			return kindConnection
		}
		return kindIfNamed(name, "keep-alive", kindDropped)
	case 11:
		return kindIfNamed(name, "traceparent", kindTraceparent)
	case 12:
		return kindIfNamed(name, "content-type", kindKept)
	case 13:
		return kindIfNamed(name, "authorization", kindKept)
	case 14:
		if equalFold(name, "content-length") {
			return kindLength
		}
		if isAlias(name, "content-length") {
			return kindAlias
		}
		return kindIfNamed(name, "http2-settings", kindDropped)
	case 15:
		return kindIfNamed(name, "x-forwarded-for", kindForwardedFor)
	case 16:
		if equalFold(name, "x-forwarded-host") {
			return kindForwardedHost
		}
		return kindIfNamed(name, "proxy-connection", kindDropped)
	case 17:
		if equalFold(name, "transfer-encoding") {
			return kindChunked
		}
		if isAlias(name, "transfer-encoding") {
			return kindAlias
		}
		return kindIfNamed(name, "x-forwarded-proto", kindForwardedProto)
	case 18:
		return kindIfNamed(name, "proxy-authenticate", kindDropped)
	case 19:
		return kindIfNamed(name, "proxy-authorization", kindDropped)
	}
	return kindPlain
}

func kindIfNamed(name []byte, want string, k kind) kind {
	if equalFold(name, want) {
		return k
	}
	return kindPlain
}

// isReserved reports whether a CGI program could read the name as Hooklock-*. CGI spells
// HTTP_HOOKLOCK_X for any case, and some servers put '_' for every byte that is neither letter nor
// digit.
func isReserved(name []byte) bool {
	const prefix = "hooklock"
	return len(name) > len(prefix) && hasPrefixFold(name, prefix) && !isAlnum(name[len(prefix)])
}

// isAlias reports whether name differs from want, which is as long, in case and in what is neither
// letter nor digit alone.
func isAlias(name []byte, want string) bool {
	for i, c := range name {
		if lowerByte(c) != want[i] && (isAlnum(c) || isAlnum(want[i])) {
			return false
		}
	}
	return true
}

// isHopByHop reports whether an answer's field is for one connection only (RFC 9110 section 7.6.1)
// or says how its body was framed there.
func isHopByHop(name []byte) bool {
	switch len(name) {
	case 2:
		return equalFold(name, "te")
	case 7:
		return equalFold(name, "trailer") || equalFold(name, "upgrade")
	case 10:
		return equalFold(name, "connection") || equalFold(name, "keep-alive")
	case 14:
		return equalFold(name, "content-length")
	case 16:
		return equalFold(name, "proxy-connection")
	case 17:
		return equalFold(name, "transfer-encoding")
	case 18:
		return equalFold(name, "proxy-authenticate")
	case 19:
		return equalFold(name, "proxy-authorization")
	}
	return false
}
