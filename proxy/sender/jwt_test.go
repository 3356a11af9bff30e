package sender

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hooklock/idem/naming"
)

// tokenOf signs claims, as a sender would.
func tokenOf(t testing.TB, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func bearer(token, body string) *Delivery {
	return &Delivery{Method: []byte("POST"), Target: []byte("/"), Body: []byte(body),
		Fields: []naming.Field{field("Authorization", "Bearer "+token)}}
}

func bodyDigest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// jwkOf is the public key in the form of RFC 7517.
func jwkOf(t testing.TB, kid string, key crypto.PublicKey) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	k := map[string]string{"kid": kid, "use": "sig"}
	switch key := key.(type) {
	case *rsa.PublicKey:
		k["kty"], k["n"], k["e"] = "RSA", encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := key.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		size := (len(point) - 1) / 2
		k["kty"], k["crv"], k["x"], k["y"] = "EC", key.Curve.Params().Name, encode(point[1:1+size]),
			encode(point[1+size:])
	case ed25519.PublicKey:
		k["kty"], k["crv"], k["x"] = "OKP", "Ed25519", encode(key)
	}
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func ecKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func publicPEM(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	return pemOf(t, "PUBLIC KEY", der, err)
}

// TestATokenOverTheBodyIsJudged covers tokens like Plaid's: ES256 with a key of a JWKS, iat, and
// the digest of the body.
func TestATokenOverTheBodyIsJudged(t *testing.T) {
	const body = `{"webhook_code":"X"}`
	key, other := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P256())
	v := mustNew(t, Config{
		Scheme: "jwt", Header: "Plaid-Verification", Tolerance: 5 * time.Minute, BodyHash: "request_body_sha256",
		PublicKeys: [][]byte{[]byte(`{"keys":[` + jwkOf(t, "k0", &other.PublicKey) + "," +
			jwkOf(t, "k1", &key.PublicKey) + "]}")},
	})
	now := testNow()
	good := jwt.MapClaims{"iat": now.Unix(), "request_body_sha256": bodyDigest(body)}
	for _, tt := range []struct {
		name  string
		token string
		body  string
		later time.Duration
		want  Reason
		part  string
	}{
		{"as it is sent", tokenOf(t, jwt.SigningMethodES256, key, "k1", good), body, 0, "", ""},
		{"without a kid", tokenOf(t, jwt.SigningMethodES256, key, "", good), body, 0, "", ""},
		{"later than the tolerance", tokenOf(t, jwt.SigningMethodES256, key, "k1", good), body, 6 * time.Minute, TooOld,
			"claim iat"},
		{"before its time", tokenOf(t, jwt.SigningMethodES256, key, "k1", good), body, -6 * time.Minute, TooNew,
			"claim iat"},
		{"another body", tokenOf(t, jwt.SigningMethodES256, key, "k1", good), body + " ", 0, Mismatch,
			"claim request_body_sha256"},
		{"another key", tokenOf(t, jwt.SigningMethodES256, other, "k1", good), body, 0, Mismatch, "Plaid-Verification"},
		{"an unknown key", tokenOf(t, jwt.SigningMethodES256, key, "k2", good), body, 0, Mismatch,
			"Plaid-Verification"},
		{"no digest", tokenOf(t, jwt.SigningMethodES256, key, "k1", jwt.MapClaims{"iat": now.Unix()}), body, 0, Missing,
			"claim request_body_sha256"},
		{"no time", tokenOf(t, jwt.SigningMethodES256, key, "k1",
			jwt.MapClaims{"request_body_sha256": bodyDigest(body)}), body, 0, Missing, "claim iat"},
		{"a time that is none", tokenOf(t, jwt.SigningMethodES256, key, "k1", jwt.MapClaims{"iat": "soon"}), body, 0,
			Malformed, "claim iat"},
		{"signed by nobody", tokenOf(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "k1", good), body, 0,
			Mismatch, "Plaid-Verification"},
		{"signed with the public key as a secret", tokenOf(t, jwt.SigningMethodHS256, publicPEM(t, &key.PublicKey),
			"k1", good), body, 0, Mismatch, "Plaid-Verification"},
		{"no token", "abc", body, 0, Malformed, "Plaid-Verification"},
		{"nothing", "", body, 0, Missing, "Plaid-Verification"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &Delivery{Body: []byte(tt.body), Fields: []naming.Field{field("Plaid-Verification", tt.token)}}
			err := v.Verify(d, now.Add(tt.later))
			if tt.want == "" && err != nil ||
				tt.want != "" && (reasonOf(t, err) != tt.want || !strings.Contains(err.Error(), ": "+tt.part+": ")) {
				t.Fatalf("%v; want %s of %s", err, tt.want, tt.part)
			}
		})
	}
}

// TestAnIdentityTokenIsJudged covers tokens like those of Pub/Sub: RS256 with a key of Google, an
// issuer, an audience and an account.
func TestAnIdentityTokenIsJudged(t *testing.T) {
	key, now := testRSA(), testNow()
	v := mustNew(t, Config{
		Scheme: "jwt", Issuer: "https://accounts.google.com", Audience: "https://hooks.example.com/pubsub",
		Claims:     []string{"email=push@example.iam.gserviceaccount.com", "email_verified=true"},
		PublicKeys: [][]byte{[]byte(`{"keys":[` + jwkOf(t, "g1", &key.PublicKey) + "]}")},
	})
	claims := func(change ...any) jwt.MapClaims {
		c := jwt.MapClaims{
			"iss": "https://accounts.google.com", "aud": "https://hooks.example.com/pubsub",
			"email": "push@example.iam.gserviceaccount.com", "email_verified": true,
			"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		}
		for i := 0; i < len(change); i += 2 {
			c[change[i].(string)] = change[i+1]
		}
		return c
	}
	for name, tt := range map[string]struct {
		claims jwt.MapClaims
		later  time.Duration
		want   Reason
	}{
		"as it is sent":      {claims(), 0, ""},
		"a list of audience": {claims("aud", []string{"x", "https://hooks.example.com/pubsub"}), 0, ""},
		"another audience":   {claims("aud", "https://else.example.com"), 0, Mismatch},
		"no audience":        {claims("aud", nil), 0, Mismatch},
		"another issuer":     {claims("iss", "https://evil.example.com"), 0, Mismatch},
		"another account":    {claims("email", "evil@example.iam.gserviceaccount.com"), 0, Mismatch},
		"not verified":       {claims("email_verified", false), 0, Mismatch},
		"expired":            {claims(), time.Hour + 2*time.Minute, TooOld},
		"just expired":       {claims(), time.Hour + 30*time.Second, ""},
		"not good yet":       {claims("nbf", now.Add(time.Hour).Unix()), 0, TooNew},
	} {
		err := v.Verify(bearer(tokenOf(t, jwt.SigningMethodRS256, key, "g1", tt.claims), "{}"), now.Add(tt.later))
		if tt.want == "" && err != nil || tt.want != "" && reasonOf(t, err) != tt.want {
			t.Errorf("%s: %v; want %s", name, err, tt.want)
		}
	}
	if Covers(Config{Scheme: "jwt", Audience: "x"}).Body || !Covers(Config{Scheme: "jwt", BodyHash: "x"}).Body {
		t.Error("the body is covered by a digest alone")
	}
}

func TestEachKindOfKeySignsItsTokens(t *testing.T) {
	p384, p521 := ecKey(t, elliptic.P384()), ecKey(t, elliptic.P521())
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("a secret of thirty-two bytes ...")
	claims := jwt.MapClaims{"aud": "me", "iss": "netlify"}
	for name, tt := range map[string]struct {
		c      Config
		method jwt.SigningMethod
		key    any
	}{
		"HS256": {Config{Secrets: [][]byte{secret}}, jwt.SigningMethodHS256, secret},
		"HS512 hex": {Config{Secrets: [][]byte{[]byte(hex.EncodeToString(secret))}, SecretEncoding: "hex"},
			jwt.SigningMethodHS512, secret},
		"PS256": {Config{PublicKeys: [][]byte{publicPEM(t, &testRSA().PublicKey)}}, jwt.SigningMethodPS256,
			testRSA()},
		"RS512": {Config{PublicKeys: [][]byte{publicPEM(t, &testRSA().PublicKey)}, Algorithm: "RS512"},
			jwt.SigningMethodRS512, testRSA()},
		"ES384": {Config{PublicKeys: [][]byte{[]byte(jwkOf(t, "", &p384.PublicKey))}}, jwt.SigningMethodES384,
			p384},
		"ES512": {Config{PublicKeys: [][]byte{publicPEM(t, &p521.PublicKey)}}, jwt.SigningMethodES512, p521},
		"EdDSA": {Config{PublicKeys: [][]byte{[]byte(jwkOf(t, "e", public))}}, jwt.SigningMethodEdDSA, private},
		"rolled": {Config{PublicKeys: [][]byte{publicPEM(t, &p521.PublicKey), []byte(jwkOf(t, "e", public))}},
			jwt.SigningMethodEdDSA, private},
	} {
		tt.c.Scheme, tt.c.Audience = "jwt", "me"
		if err := mustNew(t, tt.c).Verify(bearer(tokenOf(t, tt.method, tt.key, "", claims), ""),
			testNow()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	v := mustNew(t, Config{Scheme: "jwt", Secrets: [][]byte{secret}, Algorithm: "HS512"})
	if got := reasonOf(t, v.Verify(bearer(tokenOf(t, jwt.SigningMethodHS256, secret, "", claims), ""),
		testNow())); got != Mismatch {
		t.Errorf("an algorithm that is not the configured one: %s", got)
	}
}

func TestATokenWithACriticalExtensionIsRefused(t *testing.T) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{})
	token.Header["crit"], token.Header["b64"] = []string{"b64"}, false
	text, err := token.SignedString([]byte("s"))
	if err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, mustNew(t, Config{Scheme: "jwt", Secrets: [][]byte{[]byte("s")}}).Verify(bearer(text, ""),
		testNow())); got != Malformed {
		t.Error(got)
	}
}

func TestABadJWTConfigurationIsRefused(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	pem, set := publicPEM(t, &key.PublicKey), jwkOf(t, "", &key.PublicKey)
	p224 := ecKey(t, elliptic.P224())
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{}, "give secret_file, or public_key_file"},
		{Config{PublicKeys: [][]byte{pem}}, "give audience, or body_hash"},
		{Config{PublicKeys: [][]byte{pem}, Audience: "a", Algorithm: "RS256"}, "no configured key is for it"},
		{Config{PublicKeys: [][]byte{pem}, Audience: "a", Claims: []string{"email"}}, "write it as name=value"},
		{Config{PublicKeys: [][]byte{[]byte("abc")}, Audience: "a"}, "give PEM"},
		{Config{PublicKeys: [][]byte{publicPEM(t, &p224.PublicKey)}, Audience: "a"}, "signs no token"},
		{Config{PublicKeys: [][]byte{[]byte(`{"keys":[]}`)}, Audience: "a"}, "no public key that signs tokens"},
		{Config{PublicKeys: [][]byte{[]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`)}, Audience: "a"},
			"no public key that signs tokens"},
		{Config{PublicKeys: [][]byte{[]byte(strings.Replace(set, `"y":"`, `"y":"AA`, 1))}, Audience: "a"}, "keys[0]: "},
		{Config{PublicKeys: [][]byte{[]byte(strings.Replace(set, `"use":"sig"`, `"use":"sig","alg":"RS256"`, 1))},
			Audience: "a"}, "is not for a key of kty EC"},
		{Config{PublicKeys: [][]byte{[]byte(`{"kty":"RSA","n":"AQAB","e":"AQAB"}`)}, Audience: "a"},
			"give one of at least 2048"},
		{Config{PublicKeys: [][]byte{[]byte(`{"kty":"RSA","n":"AQAB","e":"Ag"}`)}, Audience: "a"},
			"e is not an exponent"},
		{Config{PublicKeys: [][]byte{[]byte(`{"kty":"OKP","crv":"X25519","x":"AQAB"}`)}, Audience: "a"},
			"is not an Ed25519 key"},
		{Config{Secrets: [][]byte{{}}}, "give secret_file"},
	} {
		tt.c.Scheme = "jwt"
		if _, err := New(tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v; want %q", tt.c, err, tt.want)
		}
	}
}

// FuzzJWKS checks that no text makes the parser panic, and that no parsed key accepts an unsigned
// token.
func FuzzJWKS(f *testing.F) {
	key := ecKey(f, elliptic.P256())
	f.Add([]byte(`{"keys":[` + jwkOf(f, "a", &key.PublicKey) + "," + jwkOf(f, "b", &testRSA().PublicKey) + `]}`))
	f.Add([]byte(`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`))
	f.Add([]byte(`{"kty":"EC","crv":"P-256","x":"","y":""}`))
	unsigned := tokenOf(f, jwt.SigningMethodES256, key, "", jwt.MapClaims{})
	unsigned = unsigned[:len(unsigned)-4] + "AAAA"
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseJWKS(text)
		if (err == nil) != (len(keys) > 0) {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		if err != nil {
			return
		}
		v := mustNew(t, Config{Scheme: "jwt", PublicKeys: [][]byte{append([]byte(" "), text...)}, Audience: "a"})
		if v.Verify(bearer(unsigned, ""), testNow()) == nil {
			t.Fatal("accepts what nobody signed")
		}
	})
}

// FuzzJWT checks that no token makes the verifier panic, and that only tokens of the key are
// accepted.
func FuzzJWT(f *testing.F) {
	secret := []byte("nobody guesses 5f1c0d")
	key := ecKey(f, elliptic.P256())
	v := mustNew(f, Config{Scheme: "jwt", Secrets: [][]byte{secret},
		PublicKeys: [][]byte{[]byte(jwkOf(f, "k", &key.PublicKey))}, Audience: "a", BodyHash: "h",
		Tolerance: time.Minute})
	f.Add(tokenOf(f, jwt.SigningMethodHS256, []byte("other"), "k",
		jwt.MapClaims{"aud": "a", "h": bodyDigest(""), "iat": 1767225600}))
	f.Add(tokenOf(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", jwt.MapClaims{"aud": []string{"a"}}))
	f.Add("e30.e30.")
	f.Add(fmt.Sprintf("%s..",
		base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","jku":"https://evil.example.com"}`))))
	f.Fuzz(func(t *testing.T, token string) {
		if v.Verify(bearer(token, ""), time.Unix(1767225600, 0)) == nil {
			t.Fatal("accepts what nobody signed")
		}
	})
}

// TestTheExamplesOfTheStandardAreAccepted uses RFC 7515, appendices A.1 to A.3, with their keys.
func TestTheExamplesOfTheStandardAreAccepted(t *testing.T) {
	const claims = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
	at := time.Unix(1300819380, 0)
	for name, tt := range map[string]struct {
		c     Config
		token string
	}{
		"A.1, HS256": {
			Config{Secrets: [][]byte{[]byte(
				"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")},
				SecretEncoding: "base64"},
			"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + claims + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		},
		"A.3, ES256": {
			Config{PublicKeys: [][]byte{[]byte(
				`{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`)}, Audience: "-"},
			"eyJhbGciOiJFUzI1NiJ9." + claims +
				".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
		},
	} {
		tt.c.Scheme, tt.c.Issuer, tt.c.Claims = "jwt", "joe", []string{"http://example.com/is_root=true"}
		err := mustNew(t, tt.c).Verify(bearer(tt.token, ""), at)
		if tt.c.Audience != "" { // the examples have none: their signature is right
			if err == nil || !strings.Contains(err.Error(), "claim aud") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := reasonOf(t, mustNew(t, tt.c).Verify(bearer(tt.token, ""), at.Add(time.Hour))); got != TooOld {
			t.Errorf("%s, an hour later: %s", name, got)
		}
		if got := reasonOf(t, mustNew(t, tt.c).Verify(bearer(tt.token[:len(tt.token)-3]+"AAA", ""),
			at)); got != Mismatch {
			t.Errorf("%s, changed: %s", name, got)
		}
	}
}
