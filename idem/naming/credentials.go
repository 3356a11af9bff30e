package naming

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"hooklock/idem"
)

// CredentialsDigest returns a digest of the credentials that a delivery came with, good only to see whether a duplicate came with the same
// ones: all values of the headers that p counts, in their order, and of the parameters of the query that look like one, hashed together with
// the execution that they ran, so that equal passwords do not show as equal digests. It is empty if there are none.
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
			if name, value, _ := bytes.Cut(pair, []byte{'='}); looksSecret(name) || isAny(name, "code", "sig", "key") {
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

// countsAsCredential reports whether a header is a credential. If deliveries are signed, the signature is the credential, and only the headers
// that the route names count beside it.
func countsAsCredential(p *idem.Policy, header []byte) bool {
	return !p.Verified && looksSecret(header) || slices.ContainsFunc(p.Credentials, func(name string) bool { return equalFold(header, name) })
}

// looksSecret reports whether a header or parameter of that name is a credential, or the identity that an authenticating proxy has found, as
// far as its name tells. Signatures and times, which are new with each attempt, are none.
func looksSecret(name []byte) (found bool) {
	for rest := name; len(rest) > 0; {
		end := bytes.IndexAny(rest, "-_.")
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		rest = rest[min(end+1, len(rest)):]
		alone := len(word) == len(name)
		switch {
		case isAny(word, "signature", "sign", "timestamp", "idempotency", "websocket", "agent"):
			return false
		case isAny(word, "authorization", "authentication", "auth", "cookie", "token", "secret", "password", "passwd", "credential", "credentials", "jwt", "bearer", "apikey", "session", "sessionid"):
			found = true
		case !alone && isAny(word, "user", "email", "cert"), !alone && len(rest) == 0 && isAny(word, "key"):
			found = true
		}
	}
	return found
}

// isAny reports whether b is one of words, which are in lower case, in any case of b.
func isAny(b []byte, words ...string) bool {
	for _, w := range words {
		if equalFold(b, w) {
			return true
		}
	}
	return false
}
