package config

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/net/http/httpguts"
)

// A token shorter than shortToken is a warning, one shorter than leastToken an error: it can be
// tried out.
const (
	leastToken   = 8
	shortToken   = 20
	mostToken    = 4096
	maxTokenName = 64
	mostPattern  = 1024
)

func (v *validator) checkAdmin() {
	a := &v.config.Admin
	switch err := checkAddress(a.Listen); {
	case a.Listen == "":
		v.refuse("admin.listen", "is empty; write host:port, e.g. 127.0.0.1:8079")
	case err != nil:
		v.check("admin.listen", err)
	case isLoopback(a.Listen):
	case len(a.Tokens) == 0:
		v.refuse("admin.listen", "%s can be reached from other machines; without admin.tokens it must be a loopback "+
			"address, e.g. 127.0.0.1:8079", a.Listen)
	case a.TLS.CertFile == "":
		v.warn("admin.listen", "%s can be reached from other machines, and without admin.tls tokens travel in plain "+
			"text", a.Listen)
	}
	v.checkPair("admin.tls", a.TLS.CertFile, a.TLS.KeyFile)
	v.require(a.TLS.ClientCAFile == "" || a.TLS.CertFile != "", "admin.tls.client_ca_file",
		"needs cert_file and key_file beside it")
	v.checkHosts("admin.hosts", a.Hosts)
	v.userHeader(a)
	v.checkTokens(a.Tokens)
}

func (v *validator) userHeader(a *Admin) {
	v.require(a.UserHeader == "" || httpguts.ValidHeaderFieldName(a.UserHeader), "admin.user_header",
		"%q is no name of a header; write it as X-Forwarded-User", a.UserHeader)
	v.require((a.UserHeader == "") == (len(a.UserHeaderFrom) == 0), "admin.user_header",
		"needs admin.user_header_from beside it, and the other way round")
	for i, text := range a.UserHeaderFrom {
		_, err := ParseNetwork(text)
		v.require(err == nil, indexedPath("admin.user_header_from", i),
			"%q is no address or network; write e.g. 10.0.0.5 or 10.0.0.0/24", text)
	}
}

// ParseNetwork reads an address, or a network such as 10.0.0.0/24.
func ParseNetwork(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

func (v *validator) checkTokens(tokens []Token) {
	names := map[string]int{}
	for i := range tokens {
		t, path := &tokens[i], indexedPath("admin.tokens", i)
		if err := checkTokenName(t.Name); err != nil {
			v.check(path+".name", err)
		} else if first, twice := names[t.Name]; twice {
			v.refuse(path+".name", "%q is also the name of admin.tokens[%d]", t.Name, first)
		} else {
			names[t.Name] = i
		}
		v.tokenSecret(path, tokens, i)
		v.require(len(t.Scopes) > 0, path+".scopes",
			"is empty, so the token would be good for nothing; write [read] or [read, write]")
		v.require(len(t.Workflows) > 0, path+".workflows",
			`is empty, so the token would see nothing; write e.g. ["stripe/*"], or ["*"] for all`)
		for j, pattern := range t.Workflows {
			v.require(pattern != "", indexedPath(path+".workflows", j), `is empty; write e.g. "stripe/*", or "*" for all`)
			v.require(len(pattern) <= mostPattern, indexedPath(path+".workflows", j), "is longer than %d bytes",
				mostPattern)
		}
	}
}

func checkTokenName(name string) error {
	if name == "" {
		return errors.New("a token needs a name; it is what the audit line says")
	}
	if !madeOf(name, alphanumeric+"._-@") {
		return fmt.Errorf("%q: a name is made of letters, digits and . _ - @", name)
	}
	if len(name) > maxTokenName {
		return fmt.Errorf("is longer than %d characters", maxTokenName)
	}
	if slices.Contains([]string{"policy", "callback", "anonymous"}, name) {
		return fmt.Errorf("%q is what Hooklock itself writes into records and the audit log; choose another name", name)
	}
	return nil
}

// tokenSecret checks the token at index i by its text. An empty token, or a missing file, has been
// reported when it was read.
func (v *validator) tokenSecret(path string, tokens []Token, i int) {
	t, at := &tokens[i], path+".token_file"
	if t.TokenEnv != "" {
		at = path + ".token_env"
	}
	if t.TokenFile == "" && t.TokenEnv == "" && t.Token.IsZero() {
		v.refuse(path, "has no token; give token_file or token_env")
	}
	if t.Token.IsZero() {
		return
	}
	v.check(at, checkToken(t.Token.Reveal()))
	for j := range tokens[:i] {
		if subtle.ConstantTimeCompare([]byte(tokens[j].Token.Reveal()), []byte(t.Token.Reveal())) == 1 {
			v.refuse(at, "is the same token as that of admin.tokens[%d]; give each one its own", j)
		}
	}
	if n := len(t.Token.Reveal()); n >= leastToken && n < shortToken {
		v.warn(at, "the token has only %d characters; a longer one cannot be guessed, e.g. of openssl rand -hex 32", n)
	}
}

// checkToken says why a text cannot be a token, without showing it. Its characters are those that
// RFC 6750 section 2.1 lets an Authorization header carry.
func checkToken(token string) error {
	if !madeOf(token, alphanumeric+"-._~+/=") {
		return errors.New("the token has a character that a bearer token cannot have; it is made of letters, digits " +
			"and - . _ ~ + / =, on one line")
	}
	switch {
	case len(token) < leastToken:
		return fmt.Errorf("the token has %d characters and can be guessed; it needs at least %d, and better 64, "+
			"e.g. of openssl rand -hex 32", len(token), leastToken)
	case len(token) > mostToken:
		return fmt.Errorf("the token is longer than %d characters; is it the right file?", mostToken)
	}
	return nil
}
