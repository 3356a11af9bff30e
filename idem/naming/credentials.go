package naming

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"hooklock/idem"
)

// CredentialsDigest returns a digest of the credentials that a delivery came with, good only to see
// whether a duplicate came with the same ones: all values of the headers that p counts, in their
// order, and of the parameters of the query that look like one, hashed together with the execution
// that they ran, so that equal passwords do not show as equal digests. It is empty if there are
// none.
func CredentialsDigest(execution idem.ExecutionID, m *Message, p *idem.Policy) string {
	var b []byte
	add := func(name, value []byte) {
		if b == nil {
			b = appendSized(nil, string(execution))
		}
		b = appendLower(binary.BigEndian.AppendUint32(b, uint32(len(name))), name)
		b = appendSized(b, value)
	}
	for _, f := range m.Fields {
		if countsAsCredential(p, f.Name) {
			add(f.Name, f.Value)
		}
	}
	if !p.Verified {
		for rest := m.Query; len(rest) > 0; {
			var pair []byte
			pair, rest, _ = bytes.Cut(rest, []byte{'&'})
			if name, value, _ := bytes.Cut(pair, []byte{'='}); looksSecret(name) ||
				isAny(name, "code", "sig", "key", "pass", "pwd") {
				add(append([]byte{'?'}, name...), value)
			}
		}
	}
	if b == nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// countsAsCredential reports whether a header is a credential. If deliveries are signed, the
// signature is the credential, and only the headers that the route names count beside it.
func countsAsCredential(p *idem.Policy, header []byte) bool {
	return !p.Verified && looksSecret(header) || slices.ContainsFunc(p.Credentials, func(name string) bool {
		return equalFold(header, name)
	})
}

// looksSecret reports whether a header or parameter of that name is a credential, or the identity
// that an authenticating proxy has found, as far as its name tells. Signatures and times, which are
// new with each attempt, are none. Words are compared by their ends, because many names have no
// sign between their words: accesstoken.
func looksSecret(name []byte) (found bool) {
	const handshake = "sec-websocket-" // with a new key each time
	if len(name) >= len(handshake) && equalFold(name[:len(handshake)], handshake) {
		return false
	}
	for rest := name; len(rest) > 0; {
		var word []byte
		word, rest = cutWord(rest)
		alone := len(word) == len(name)
		word = bytes.TrimRight(word, "0123456789")
		switch {
		case isAny(word, "sign"), endsInAny(word, "signature", "timestamp", "idempotency"):
			return false
		case isAny(word, identities...) && isAgent(rest): // a program, and no person
		case endsInAny(word, "authorization", "authentication", "auth", "cookie", "token", "secret", "password",
			"passwd", "passphrase", "credential", "credentials", "jwt", "bearer",
			"passcode",
			"apikey", "accesskey", "secretkey", "privatekey", "authkey", "webhookkey", "masterkey", "clientkey",
			"hmackey", "session", "sessionid"):
			found = true
		case !alone && (isAny(word, identities...) || isAny(word, "cert")), !alone && len(rest) == 0 &&
			isAny(word, "key"):
			found = true
		}
	}
	return found
}

// identities are the words for whom an authenticating proxy has found.
var identities = []string{"user", "username", "login", "email"}

// isAgent reports whether what follows in a name begins with the word agent.
func isAgent(rest []byte) bool {
	word, _ := cutWord(rest)
	return isAny(word, "agent")
}

// cutWord returns the first word of a name and the rest: words are parted by "-", "_" or ".", or
// begin with a capital, as in ApiToken, JWTToken.
func cutWord(name []byte) (word, rest []byte) {
	for i, c := range name {
		switch {
		case c == '-' || c == '_' || c == '.':
			return name[:i], name[i+1:]
		case i > 0 && isUpper(c) && (!isUpper(name[i-1]) || i+1 < len(name) && isLower(name[i+1])):
			return name[:i], name[i:]
		}
	}
	return name, nil
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// endsInAny reports whether b ends in one of words, which are in lower case, in any case of b.
func endsInAny(b []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return len(b) >= len(w) && equalFold(b[len(b)-len(w):], w)
	})
}

// isAny reports whether b is one of words, which are in lower case, in any case of b.
func isAny(b []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return equalFold(b, w) })
}
