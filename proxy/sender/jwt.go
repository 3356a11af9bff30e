package sender

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// jwtLeeway is the difference of clocks that exp and nbf allow for.
const jwtLeeway = time.Minute

// jwtVerifier verifies the JSON Web Token (RFC 7519) of a delivery with the configured keys. It
// ignores addresses of keys in the header of a token (jku, x5u).
type jwtVerifier struct {
	scheme, prefix string
	from           places
	keys           []jwtKey
	parser         *jwt.Parser
	age            age
	issuer         string
	audience       string
	claims         [][2]string
	bodyHash       string
}

// jwtKey is a key that a token may be signed with.
type jwtKey struct {
	id      string // "" if it has none
	key     any
	methods []string // the algorithms that it may be used with
}

func newJWT(c Config) (Verifier, error) {
	if c.Header == "" && len(c.From) == 0 && c.Prefix == "" {
		c.Prefix = "Bearer "
	}
	from, err := placesOf(&c, "Authorization")
	if err != nil {
		return nil, err
	}
	v := &jwtVerifier{
		scheme: c.Scheme, prefix: c.Prefix, from: from, age: age{tolerance: c.Tolerance}, issuer: c.Issuer,
		audience: c.Audience, bodyHash: c.BodyHash,
	}
	if v.keys, err = jwtKeys(&c); err != nil {
		return nil, err
	}
	for _, claim := range c.Claims {
		name, value, ok := strings.Cut(claim, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("claims %q: write it as name=value", claim)
		}
		v.claims = append(v.claims, [2]string{name, value})
	}
	if len(c.PublicKeys) > 0 && c.Audience == "" && c.BodyHash == "" {
		return nil, errors.New("give audience, or body_hash: a token that the issuer made for another receiver " +
			"would be accepted")
	}
	var methods []string
	for _, k := range v.keys {
		methods = append(methods, k.methods...)
	}
	v.parser = jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())
	return v, nil
}

// jwtKeys returns the secrets and public keys of c, each with its algorithms.
func jwtKeys(c *Config) ([]jwtKey, error) {
	var all []jwtKey
	if len(c.Secrets) > 0 {
		secrets, err := decodedSecrets(c)
		if err != nil {
			return nil, err
		}
		for _, s := range secrets {
			all = append(all, jwtKey{key: s, methods: []string{"HS256", "HS384", "HS512"}})
		}
	}
	for i, text := range c.PublicKeys {
		keys, err := jwtPublicKeys(text)
		if err != nil {
			return nil, fmt.Errorf("public key %d: %w", i+1, err)
		}
		all = append(all, keys...)
	}
	if len(all) == 0 {
		return nil, errors.New("give secret_file, or public_key_file: a PEM key or a JWKS")
	}
	if c.Algorithm == "" {
		return all, nil
	}
	usable := all[:0]
	for _, k := range all {
		if slices.Contains(k.methods, c.Algorithm) {
			k.methods = []string{c.Algorithm}
			usable = append(usable, k)
		}
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("algorithm %q: no configured key is for it", c.Algorithm)
	}
	return usable, nil
}

// jwtPublicKeys parses PEM, a JWKS or a single JWK.
func jwtPublicKeys(text []byte) ([]jwtKey, error) {
	if strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		return parseJWKS(text)
	}
	keys, err := publicKeysOf(text, func([]byte) (crypto.PublicKey, error) {
		return nil, errors.New("give PEM (a PUBLIC KEY or a CERTIFICATE), or the sender's JWKS")
	})
	if err != nil {
		return nil, err
	}
	var all []jwtKey
	for _, k := range keys {
		methods, err := methodsOf(k)
		if err != nil {
			return nil, err
		}
		all = append(all, jwtKey{key: k, methods: methods})
	}
	return all, nil
}

// methodsOf returns the algorithms of a public key.
func methodsOf(key crypto.PublicKey) ([]string, error) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, checkRSA(k)
	case *ecdsa.PublicKey:
		for name, size := range map[string]int{"ES256": 256, "ES384": 384, "ES512": 521} {
			if k.Curve.Params().BitSize == size {
				return []string{name}, nil
			}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}, nil
	}
	return nil, fmt.Errorf("a %T signs no token; give an RSA, ECDSA or Ed25519 key", key)
}

func (v *jwtVerifier) checkHead(d *Delivery) error {
	if !v.from.inHead() {
		return nil
	}
	c := &claim{}
	return v.from.readSignatures(v.scheme, v.prefix, d, c)
}

// Verify implements Verifier.
func (v *jwtVerifier) Verify(d *Delivery, now time.Time) error {
	c := &claim{}
	c.signatures = c.signaturesMemory[:0]
	if err := v.from.readSignatures(v.scheme, v.prefix, d, c); err != nil {
		return err
	}
	var wrong error
	for _, token := range c.signatures[:min(len(c.signatures), maxSlowSignatures)] {
		if wrong = v.checkToken(string(token), d.Body, now); wrong == nil {
			return nil
		}
	}
	return wrong
}

// checkToken checks one token: first its signature, then its claims, so that only a genuine token
// is "too old".
func (v *jwtVerifier) checkToken(text string, body []byte, now time.Time) error {
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(text, claims, v.keysFor)
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return v.signatureError(Malformed, v.from.namesOfPlaces(), "is not a JSON Web Token")
	case errors.Is(err, errCritical):
		return v.signatureError(Malformed, v.from.namesOfPlaces(),
			"its header has crit: an extension that Hooklock does not know and must not ignore")
	case errors.Is(err, errNoSuchKey):
		return v.signatureError(Mismatch, v.from.namesOfPlaces(),
			"its key (kid) is not configured: the sender may have a new key, which has to be added by hand")
	case err != nil:
		return v.signatureError(Mismatch, v.from.namesOfPlaces(),
			"made with another key or algorithm than the configured one, or changed on the way")
	}
	if err := v.checkTimes(claims, now); err != nil {
		return err
	}
	return v.checkClaims(claims, body)
}

func (v *jwtVerifier) signatureError(reason Reason, part, detail string) error {
	return &SignatureError{v.scheme, reason, part, detail}
}

var (
	errNoSuchKey = errors.New("no such key")          // no configured key has the kid
	errCritical  = errors.New("a critical extension") // RFC 7515 section 4.1.11; the library ignores it
)

// keysFor returns the keys that may have signed t: those with its kid, and those without one.
func (v *jwtVerifier) keysFor(t *jwt.Token) (any, error) {
	if _, there := t.Header["crit"]; there {
		return nil, errCritical
	}
	id, _ := t.Header["kid"].(string)
	var set jwt.VerificationKeySet
	for _, k := range v.keys {
		if slices.Contains(k.methods, t.Method.Alg()) && (k.id == "" || id == "" || k.id == id) {
			set.Keys = append(set.Keys, k.key)
		}
	}
	if len(set.Keys) == 0 {
		return nil, errNoSuchKey
	}
	return set, nil
}

// checkTimes checks exp, nbf and the age of iat.
func (v *jwtVerifier) checkTimes(claims jwt.MapClaims, now time.Time) error {
	for _, name := range []string{"exp", "nbf", "iat"} {
		at, there, ok := claimTime(claims, name)
		switch {
		case !ok:
			return v.signatureError(Malformed, "claim "+name, "is not a Unix time")
		case !there && name == "iat" && v.age.tolerance > 0:
			return v.signatureError(Missing, "claim iat",
				"the token does not say when it was made, and tolerance requires it")
		case !there:
		case name == "exp" && now.Sub(at) > jwtLeeway:
			return v.signatureError(TooOld, "claim exp",
				"the token has expired: a replay, or this machine's clock is ahead")
		case name == "nbf" && at.Sub(now) > jwtLeeway:
			return v.signatureError(TooNew, "claim nbf", "the token is not valid yet: this machine's clock is behind")
		case name == "iat":
			if err := v.age.checkAge(v.scheme, "claim iat", at, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimTime returns the time in a claim. ok is false if the claim is not a time.
func claimTime(claims jwt.MapClaims, name string) (at time.Time, there, ok bool) {
	value, there := claims[name]
	if !there {
		return at, false, true
	}
	seconds, ok := value.(float64)
	if !ok || seconds < 0 || seconds > 1e12 {
		return at, true, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true, true
}

// checkClaims checks the issuer, the audience, the configured claims and the digest of the body.
func (v *jwtVerifier) checkClaims(claims jwt.MapClaims, body []byte) error {
	if issuer, _ := claims["iss"].(string); v.issuer != "" && issuer != v.issuer {
		return v.signatureError(Mismatch, "claim iss", "is not the configured issuer")
	}
	if audience, err := claims.GetAudience(); v.audience != "" &&
		(err != nil || !slices.Contains(audience, v.audience)) {
		return v.signatureError(Mismatch, "claim aud",
			"does not contain the configured audience: the token was made for another receiver")
	}
	for _, c := range v.claims {
		if got, there := claims[c[0]]; !there || claimText(got) != c[1] {
			return v.signatureError(Mismatch, "claim "+c[0], "is not what claims requires")
		}
	}
	if v.bodyHash == "" {
		return nil
	}
	digest, _ := claims[v.bodyHash].(string)
	if digest == "" {
		return v.signatureError(Missing, "claim "+v.bodyHash, "the token has no digest of the body")
	}
	if !isDigestOf(digest, body) {
		return v.signatureError(Mismatch, "claim "+v.bodyHash,
			"is not the SHA-256 of the body: the body was changed on the way")
	}
	return nil
}

// claimText returns a string, number or boolean as the configuration writes it, and "" for other
// values.
func claimText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool, float64:
		text, _ := json.Marshal(v)
		return string(text)
	}
	return ""
}

// isDigestOf reports whether text is the SHA-256 of body in hex or a kind of base64.
func isDigestOf(text string, body []byte) bool {
	sum := sha256.Sum256(body)
	match := 0
	for _, spelled := range []string{
		hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum[:]),
		base64.URLEncoding.EncodeToString(sum[:]), base64.RawURLEncoding.EncodeToString(sum[:]),
	} {
		match |= subtle.ConstantTimeCompare([]byte(spelled), []byte(text))
	}
	return match == 1 || subtle.ConstantTimeCompare([]byte(strings.ToUpper(hex.EncodeToString(sum[:]))),
		[]byte(text)) == 1
}

func jwtCovers(c Config) Coverage { return Coverage{Body: c.BodyHash != "", Time: true} }
