package admin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hooklock/idem"
)

// Token is a bearer token and what it allows.
type Token struct {
	// Name appears in the audit log, and in the record of what the token has aborted.
	Name string
	// Digest is the SHA-256 of the secret; see Digest.
	Digest [sha256.Size]byte
	Read   bool // may read
	Write  bool // may change
	Bodies bool // may see what senders sent: whole requests
	Reload bool // may reload the configuration, as Write may
	// Workflows are patterns of the workflows that the token is for; "*" stands for any characters.
	// None means all workflows.
	Workflows []string
}

// Digest returns the SHA-256 of a secret for a Token.
func Digest(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// Access says which clients may use the API.
type Access struct {
	Tokens []Token
	// Open lets every client read that can reach the listener.
	Open bool
	// Hosts are names that the Host header may be, besides IP addresses and localhost.
	Hosts []string
	// UserHeader is the header in which a proxy names the user that it has authenticated; "" =
	// none. It is trusted from UserHeaderFrom alone.
	UserHeader     string
	UserHeaderFrom []netip.Prefix
}

// caller is the authenticated client.
type caller struct {
	token Token
	// key is a callback key, which the ledger has yet to compare.
	key string
}

// maySee reports whether the caller may know of a workflow.
func (c *caller) maySee(workflow string) bool {
	return !c.isLimited() || slices.ContainsFunc(c.token.Workflows, func(pattern string) bool {
		return idem.MatchPattern(pattern, workflow)
	})
}

// isLimited reports whether there are workflows that the caller may not see.
func (c *caller) isLimited() bool {
	return len(c.token.Workflows) > 0 && !slices.Contains(c.token.Workflows, "*")
}

// bearerToken returns the token of a request; "" if there is none. ok is false for a header that is
// no bearer token, or given twice.
func bearerToken(r *http.Request) (token string, ok bool) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return "", true
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	token = strings.TrimSpace(token)
	return token, len(given) == 1 && strings.EqualFold(scheme, "Bearer") && token != ""
}

// findToken finds the token with this secret. It compares with all of them, in a time that reveals
// nothing about any.
func (a *Access) findToken(secret string) (Token, bool) {
	digest := Digest(secret)
	var found Token
	var ok bool
	for _, t := range a.Tokens {
		if subtle.ConstantTimeCompare(digest[:], t.Digest[:]) == 1 && !ok {
			found, ok = t, true
		}
	}
	return found, ok
}

// admitCaller returns the caller, or why it is refused.
func (a *Access) admitCaller(e *endpoint, r *http.Request) (caller, *problem) {
	secret, ok := bearerToken(r)
	switch {
	case !ok:
		return caller{}, unauthorizedProblem("give one header Authorization: Bearer <token>")
	case e.access == forCallback && secret == "":
		return caller{}, unauthorizedProblem(
			"give the execution's own callback key (header Hooklock-Callback-Key of its " +
				"delivery) as Authorization: Bearer <key>")
	case e.access == forCallback:
		return caller{token: Token{Name: "callback"}, key: secret}, nil
	case secret == "" && e.access == forRead && a.Open:
		return caller{token: Token{Name: anonymous, Read: true}}, nil
	case secret == "":
		return caller{}, unauthorizedProblem(a.whichToken())
	}
	token, ok := a.findToken(secret)
	switch {
	case !ok:
		return caller{}, unauthorizedProblem("the token is not known here; " + a.whichToken())
	case e.access == forRead && !token.Read:
		return caller{token: token}, forbiddenProblem("read")
	case e.access == forWrite && !token.Write && !(token.Reload && e.change == ReloadConfig):
		return caller{token: token}, forbiddenProblem("write")
	case e.access == forBodies && !token.Bodies:
		return caller{token: token}, forbiddenProblem("bodies")
	}
	person, p := a.personName(r)
	if person != "" {
		token.Name = person + " (" + token.Name + ")"
	}
	return caller{token: token}, p
}

// maxPerson is the length of the longest user name, in bytes.
const maxPerson = 128

// personName returns the user name that a trusted proxy gives to the caller; "" = none.
func (a *Access) personName(r *http.Request) (string, *problem) {
	if a.UserHeader == "" {
		return "", nil
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero value is in no network
	if !slices.ContainsFunc(a.UserHeaderFrom, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) }) {
		return "", nil
	}
	given := r.Header.Values(a.UserHeader)
	switch {
	case len(given) == 0:
		return "", nil
	case len(given) > 1, given[0] == "", len(given[0]) > maxPerson, !utf8.ValidString(given[0]),
		strings.ContainsFunc(given[0], unicode.IsControl):
		return "", refuse("bad_request", fmt.Sprintf("the proxy has to send the header %s once, with a name of 1 to "+
			"%d bytes", a.UserHeader, maxPerson))
	}
	return given[0], nil
}

// whichToken says where to find a token.
func (a *Access) whichToken() string {
	switch {
	case !a.Open:
		return "give one of admin.tokens (Authorization: Bearer <token>)"
	case len(a.Tokens) == 0:
		return "this Hooklock takes no changes: its generated token could not be kept in data_dir; configure " +
			"admin.tokens"
	}
	return "give the one in <data_dir>/" + TokenFile + " (Authorization: Bearer <token>)"
}

func unauthorizedProblem(detail string) *problem {
	p := refuse("unauthorized", detail)
	p.header.Set("WWW-Authenticate", `Bearer realm="hooklock"`)
	return p
}

func forbiddenProblem(scope string) *problem {
	p := refuse("forbidden", "the token lacks the scope "+scope)
	p.header.Set("WWW-Authenticate", `Bearer realm="hooklock", error="insufficient_scope", scope="`+scope+`"`)
	return p
}

// anonymous is the name of a caller without a token, where reads need none.
const anonymous = "anonymous"

// A cursor of the ledger names the last key of its page, and with it a workflow that the caller may
// not see. So it is sealed, under a key made of the caller's token: every replica knows the token,
// so every replica can go on with the list, and no other client can make one. A caller without a
// token sees every workflow: that key keeps no secret, and a made-up cursor is only another place
// to begin at.

// sealCursor returns a cursor of the ledger for the caller.
func (c *caller) sealCursor(cursor string) string {
	if cursor == "" {
		return ""
	}
	seal := c.cursorSeal()
	nonce := make([]byte, seal.NonceSize())
	_, _ = rand.Read(nonce) // crypto/rand.Read never returns an error
	return base64.RawURLEncoding.EncodeToString(seal.Seal(nonce, nonce, []byte(cursor), nil))
}

// openCursor returns the ledger's cursor from the caller's.
func (c *caller) openCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	seal := c.cursorSeal()
	if err != nil || len(sealed) < seal.NonceSize() {
		return "", idem.ErrCursor
	}
	plain, err := seal.Open(nil, sealed[:seal.NonceSize()], sealed[seal.NonceSize():], nil)
	if err != nil {
		return "", idem.ErrCursor
	}
	return string(plain), nil
}

func (c *caller) cursorSeal() cipher.AEAD {
	key := sha256.Sum256(append([]byte("hooklock cursor "), c.token.Digest[:]...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block that GCM wants
	}
	return seal
}
