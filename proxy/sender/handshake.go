package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hooklock/idem/naming"
)

// Handshake is a request of the sender that is not an event. It goes to the upstream without a key
// or a lock.
type Handshake struct {
	Name string
	// Signed reports whether its signature is checked first, like that of an event.
	Signed bool
	// Matches reports whether a delivery is this handshake. If Signed, it reads only what the
	// signature covers: otherwise a captured event could be disguised as a handshake and run again.
	Matches func(d *Delivery) bool
}

// RuledHandshake is a handshake of the configuration. One that is not Signed has an Answer.
type RuledHandshake struct {
	Handshake
	// Method is the only method of the handshake, even if the route has others. If empty, the
	// methods of the route apply.
	Method string
	// Answer returns the answer to the sender, or a *SignatureError. If it is nil, the upstream
	// answers once CheckToken has passed.
	Answer func(d *Delivery) (*HandshakeAnswer, error)

	head   func(d *Delivery) bool // the conditions on the head
	scheme string
	token  *expected
}

// CheckToken returns a *SignatureError if d lacks the token of the handshake.
func (h *RuledHandshake) CheckToken(d *Delivery) error { return h.token.checkToken(h.scheme, d) }

// MayCome reports whether d, of which only the head was read, may be this handshake and therefore
// unsigned.
func (h *RuledHandshake) MayCome(d *Delivery) bool { return !h.Signed && h.head(d) }

// HandshakeAnswer is the answer to a handshake, with status 200.
type HandshakeAnswer struct {
	ContentType string
	Header      []naming.Field // further fields
	Body        []byte         // may be empty
}

// HandshakeRule is the setting handshake of a route: which requests are a handshake, and what
// answers them. The zero value is no handshake.
type HandshakeRule struct {
	// Method is the method of the request, even if the route has others. If empty, the methods of
	// the route apply.
	Method string
	// When lists template sources that a handshake has, such as query.hub.challenge, or
	// body.type=url_verification with a required value. All of them must hold. If empty, there is
	// no handshake.
	When []string
	// Unsigned reports whether the handshake has no signature. It then needs an answer.
	Unsigned bool
	// TokenAt is the source that must equal Token, a secret. If empty, no token is required.
	TokenAt string
	Token   []byte
	// Answer is text with sources in braces, like Content of a signature. {hmac.SOURCE} is the
	// digest of a source under the first secret; it requires a signature or a token. If Answer is
	// empty, there is no body. With ContentType application/json, values are escaped for a JSON
	// string.
	Answer      string
	ContentType string // empty: text/plain
	// Header is a further header line of the answer, such as "X-Hook-Secret:
	// {header.X-Hook-Secret}". If Answer and Header are empty, the upstream answers.
	Header string
}

// maxEcho bounds each value that an answer repeats, in bytes.
const maxEcho = 4096

// condition is one element of When.
type condition struct {
	lookup *naming.Lookup
	value  string // "" for any
	// word occurs in every body that has the value. It is empty if no such word is known.
	word []byte
}

// wordIn returns the part of a value to search for in a body before the body is parsed. Letters are
// never escaped, but other characters are: a slash by PHP in JSON, a space in a form, an & in XML.
// A digest of the body does not occur in it.
func wordIn(kind naming.SourceKind, value string) []byte {
	if kind == naming.SourceBodySHA256 || strings.ContainsFunc(value, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r))
	}) {
		return nil
	}
	return []byte(value)
}

// NewHandshake returns the handshake of r under the secrets of c, or nil for the zero rule. An
// unsigned handshake is never passed on.
func NewHandshake(r HandshakeRule, c Config) (*RuledHandshake, error) {
	if len(r.When) == 0 {
		if r.Answer != "" || r.Header != "" || r.Method != "" || r.TokenAt != "" {
			return nil, errors.New("give when: what distinguishes a handshake from an event, such as " +
				"query.hub.challenge")
		}
		return nil, nil //nolint:nilnil // no rule, no handshake
	}
	conditions, err := r.parseConditions()
	if err != nil {
		return nil, err
	}
	inHead := slices.DeleteFunc(slices.Clone(conditions), func(c condition) bool {
		return ofBodyKind(c.lookup.Source().Kind)
	})
	h := &RuledHandshake{
		Handshake: Handshake{strings.Join(r.When, ", "), !r.Unsigned, allHold(r.Method, conditions)}, Method: r.Method,
		head:   allHold(r.Method, inHead),
		scheme: c.Scheme,
	}
	if h.token, err = r.expectedToken(); err != nil {
		return nil, err
	}
	if r.Answer == "" && r.Header == "" {
		return h, r.checkBypass(conditions, c)
	}
	if h.Answer, err = r.answerMaker(&c, h.token); err != nil {
		return nil, err
	}
	return h, nil
}

func (r *HandshakeRule) parseConditions() ([]condition, error) {
	var all []condition
	for _, text := range r.When {
		source, value, valued := strings.Cut(text, "=")
		l, err := parseLookup(source)
		if err != nil {
			return nil, fmt.Errorf("when %q: %w", text, err)
		}
		if valued && value == "" {
			return nil, fmt.Errorf("when %q: an empty value is a missing one; leave the = out if any value will do",
				text)
		}
		if r.Method != "" && ofBodyKind(l.Source().Kind) {
			return nil, fmt.Errorf("when %q: a handshake with a method of its own is recognised by its head; give a "+
				"source such as query.challenge, or leave method out", text)
		}
		all = append(all, condition{l, value, wordIn(l.Source().Kind, value)})
	}
	return all, nil
}

func ofBodyKind(kind naming.SourceKind) bool {
	switch kind {
	case naming.SourceBody, naming.SourceForm, naming.SourceXML, naming.SourceBodySHA256:
		return true
	}
	return false
}

// checkBypass rejects a rule that would let unsigned requests past the signature check and the
// lock.
func (r *HandshakeRule) checkBypass(conditions []condition, c Config) error {
	if r.Unsigned {
		return errors.New("give answer or header: an unsigned handshake is not passed on")
	}
	covers := Covers(c)
	for _, one := range conditions {
		if s := one.lookup.Source(); c.Scheme != noScheme && !covers.coversSource(s) {
			return fmt.Errorf("when %q: is not signed, so a captured event could run again as a handshake; give a "+
				"signed source, or give answer", s.Text)
		}
	}
	return nil
}

// coversSource reports whether c covers s.
func (c *Coverage) coversSource(s naming.Source) bool {
	switch {
	case ofBodyKind(s.Kind) && c.Body:
		return true
	case s.Kind == naming.SourceHeader && c.coversHeader(s.Name):
		return true
	case s.Kind == naming.SourceQuery && c.URL, s.Kind == naming.SourceMethod && c.Method:
		return true
	}
	return slices.Contains(c.Sources, s.Text)
}

// allHold returns a function that reports whether a delivery fulfils all conditions.
func allHold(method string, conditions []condition) func(*Delivery) bool {
	return func(d *Delivery) bool {
		if method != "" && string(d.Method) != method {
			return false
		}
		for i := range conditions { // before parsing: nearly no delivery is a handshake
			if c := &conditions[i]; ofBodyKind(c.lookup.Source().Kind) && !bytes.Contains(d.Body, c.word) {
				return false
			}
		}
		m := d.asMessage()
		for i := range conditions {
			value, r := conditions[i].lookup.Read(m)
			if r != naming.ReadFound || conditions[i].value != "" && string(value) != conditions[i].value {
				return false
			}
		}
		return true
	}
}

// answerMaker returns the function that answers, or nil if the upstream does.
func (r *HandshakeRule) answerMaker(c *Config, token *expected) (func(*Delivery) (*HandshakeAnswer, error), error) {
	body, err := answerPieces("answer", r.Answer)
	if err != nil {
		return nil, err
	}
	name, value, ok := strings.Cut(r.Header, ":")
	if r.Header != "" && (!ok || !isToken(name)) {
		return nil, fmt.Errorf("header %q: write it as \"X-Hook-Secret: {header.X-Hook-Secret}\"", r.Header)
	}
	line, err := answerPieces("header", strings.TrimSpace(value))
	if err != nil {
		return nil, err
	}
	contentType, err := r.answerType()
	if err != nil {
		return nil, err
	}
	texts := maker{scheme: c.Scheme, json: strings.HasPrefix(r.ContentType, "application/json")}
	if texts.mac, err = answerMAC(c, slices.Concat(body, line)); err != nil {
		return nil, err
	}
	if err := r.checkDigests(slices.Concat(body, line), c); err != nil {
		return nil, err
	}
	return func(d *Delivery) (*HandshakeAnswer, error) {
		if err := token.checkToken(c.Scheme, d); err != nil {
			return nil, err
		}
		text, err := texts.makeText(body, d, texts.json)
		if err != nil {
			return nil, err
		}
		answer := &HandshakeAnswer{ContentType: contentType, Body: text}
		if len(line) == 0 {
			return answer, nil
		}
		value, err := texts.headerValue(line, d)
		if err != nil {
			return nil, err
		}
		answer.Header = []naming.Field{{Name: []byte(name), Value: value}}
		return answer, nil
	}, nil
}

// headerValue returns line with the values of d, or a SignatureError if that is no header's value.
func (m *maker) headerValue(line pieces, d *Delivery) ([]byte, error) {
	text, err := m.makeText(line, d, false)
	if err != nil {
		return nil, err
	}
	if bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, &SignatureError{m.scheme, Malformed, "handshake",
			"has a control character, which a header must not have"}
	}
	return text, nil
}

// answerType returns the Content-Type of the answer; "" = it has none. It returns an error for one
// that a browser would run, because the answer may repeat what a stranger sent.
func (r *HandshakeRule) answerType() (string, error) {
	switch {
	case runsInBrowser(r.ContentType):
		return "", fmt.Errorf("content_type %q: a browser would run what a stranger sends; use text/plain or "+
			"application/json", r.ContentType)
	case r.ContentType == "" && r.Answer != "":
		return "text/plain; charset=utf-8", nil
	}
	return r.ContentType, nil
}

// checkDigests rejects an answer with the digest of a value that any caller can choose: it could be
// the signature of an event.
func (r *HandshakeRule) checkDigests(all pieces, c *Config) error {
	covers := Covers(*c)
	for _, p := range all {
		if p.mac && r.TokenAt == "" && (r.Unsigned || !covers.coversSource(p.lookup.Source())) {
			return fmt.Errorf("{%s} in the answer is not signed: any caller could get the digest of any text, such "+
				"as the signature of an event; "+
				"ask for a token, or let the upstream answer", p.name)
		}
	}
	return nil
}

func answerPieces(setting, content string) (pieces, error) {
	all, err := parsePieces(setting, content)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(p piece) bool { return p.source == "url" }) {
		return nil, fmt.Errorf("%s %q: {url} is for signatures; give {target}", setting, content)
	}
	return all, nil
}

// isToken reports whether name is a valid header name.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// answerMAC returns the verifier that makes the digests of {hmac.…}, or nil if all has none.
func answerMAC(c *Config, all pieces) (*macVerifier, error) {
	if !slices.ContainsFunc(all, func(p piece) bool { return p.mac }) {
		return nil, nil //nolint:nilnil // nothing to make
	}
	v, err := keyedBy(c)
	if err != nil {
		return nil, fmt.Errorf("{hmac.…}: %w", err)
	}
	return v, nil
}

// maker builds answers.
type maker struct {
	scheme string
	mac    *macVerifier
	json   bool
}

func (m *maker) makeText(all pieces, d *Delivery, escaped bool) ([]byte, error) {
	c := &claim{}
	var text []byte
	for i := range all {
		p := &all[i]
		value, err := p.readValue(m.scheme, d, c, nil)
		switch {
		case err != nil:
			return nil, err
		case p.source != "" && len(value) > maxEcho:
			return nil, &SignatureError{m.scheme, Malformed, p.name, "is too long to repeat in an answer"}
		case p.mac:
			value = m.mac.macs[0].signParts(m.mac.encoding, value)
		}
		if p.source != "" && escaped {
			value = jsonEscaped(value)
		}
		text = append(text, value...)
	}
	return text, nil
}

// jsonEscaped returns text escaped for the inside of a JSON string.
func jsonEscaped(text []byte) []byte {
	quoted, _ := json.Marshal(string(text))
	return quoted[1 : len(quoted)-1]
}

// expected is the token that a handshake must have. The zero value requires none.
type expected struct {
	lookup *naming.Lookup
	digest [][sha256.Size]byte
}

func (r *HandshakeRule) expectedToken() (*expected, error) {
	if r.TokenAt == "" {
		if len(r.Token) > 0 {
			return nil, errors.New("give token: the source that must equal the configured token, such as " +
				"query.hub.verify_token")
		}
		return &expected{}, nil
	}
	l, err := parseLookup(r.TokenAt)
	if err != nil {
		return nil, fmt.Errorf("token %q: %w", r.TokenAt, err)
	}
	if len(r.Token) == 0 {
		return nil, errors.New("give token_file: the token that you gave the sender")
	}
	return &expected{l, digestsOf([][]byte{r.Token})}, nil
}

func (e *expected) checkToken(scheme string, d *Delivery) error {
	if e.lookup == nil {
		return nil
	}
	c := &claim{}
	value, err := c.lookUp(scheme, e.lookup, d)
	if err != nil {
		return err
	}
	if !isOneOf(value, e.digest) {
		return &SignatureError{scheme, Mismatch, partOf(e.lookup.Source()), "is not the configured token"}
	}
	return nil
}

// runsInBrowser reports whether a browser takes a text of that media type for a page or a script.
func runsInBrowser(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	// XML may have XHTML in it, multipart any type
	return slices.ContainsFunc([]string{"html", "svg", "script", "xml", "xsl", "multipart"}, func(part string) bool {
		return strings.Contains(media, part)
	})
}
