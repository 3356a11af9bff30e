package sender

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// jwk is a public key of RFC 7517.
type jwk struct {
	Kty string `json:"kty"`
	Use string `json:"use"`
	Kid string `json:"kid"`
	Alg string `json:"alg"`
	Crv string `json:"crv"`
	N   string `json:"n"`
	E   string `json:"e"`
	X   string `json:"x"`
	Y   string `json:"y"`
}

// parseJWKS parses a set of keys or a single key. It skips keys for other purposes and of kinds
// that sign no token. It returns an error if no key is left.
func parseJWKS(text []byte) ([]jwtKey, error) {
	var set struct {
		Keys []jwk `json:"keys"`
		jwk
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("is not a JWKS: %w", err)
	}
	if set.Kty != "" {
		set.Keys = append(set.Keys, set.jwk)
	}
	var all []jwtKey
	for i := range set.Keys {
		k := &set.Keys[i]
		if k.Use != "" && k.Use != "sig" || !slices.Contains([]string{"RSA", "EC", "OKP"}, k.Kty) {
			continue
		}
		key, err := k.publicKey()
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		methods, err := methodsOf(key)
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		if k.Alg != "" {
			if !slices.Contains(methods, k.Alg) {
				return nil, fmt.Errorf("keys[%d]: alg %q is not for a key of kty %s", i, k.Alg, k.Kty)
			}
			methods = []string{k.Alg}
		}
		all = append(all, jwtKey{k.Kid, key, methods})
	}
	if len(all) == 0 {
		return nil, errors.New("the JWKS has no public key that signs tokens (kty RSA, EC or OKP)")
	}
	return all, nil
}

func (k *jwk) publicKey() (crypto.PublicKey, error) {
	switch k.Kty {
	case "RSA":
		n, err := jwkBytes("n", k.N)
		if err != nil {
			return nil, err
		}
		e, err := jwkBytes("e", k.E)
		if err != nil || len(e) > 4 {
			return nil, errors.New("e is not an exponent")
		}
		exponent := new(big.Int).SetBytes(e).Int64()
		if exponent < 3 || exponent > 1<<31-1 || exponent%2 == 0 {
			return nil, errors.New("e is not an exponent")
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent)}, nil
	case "EC":
		return k.ecKey()
	}
	x, err := jwkBytes("x", k.X)
	if err != nil || k.Crv != "Ed25519" || len(x) != ed25519.PublicKeySize {
		return nil, errors.New("is not an Ed25519 key")
	}
	return ed25519.PublicKey(x), nil
}

func (k *jwk) ecKey() (crypto.PublicKey, error) {
	curve, ok := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(),
		"P-521": elliptic.P521()}[k.Crv]
	if !ok {
		return nil, fmt.Errorf("crv %q: is not P-256, P-384 or P-521", k.Crv)
	}
	x, err := jwkBytes("x", k.X)
	if err != nil {
		return nil, err
	}
	y, err := jwkBytes("y", k.Y)
	if err != nil {
		return nil, err
	}
	size := (curve.Params().BitSize + 7) / 8
	if len(x) > size || len(y) > size {
		return nil, errors.New("x or y is too long for its curve")
	}
	point := slices.Concat([]byte{4}, bytes.Repeat([]byte{0}, size-len(x)), x, bytes.Repeat([]byte{0}, size-len(y)), y)
	key, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, fmt.Errorf("x and y are not a point of %s: %w", k.Crv, err)
	}
	return key, nil
}

// jwkBytes decodes a number in base64url.
func jwkBytes(name, text string) ([]byte, error) {
	value, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(value) == 0 {
		return nil, fmt.Errorf("%s is no base64url", name)
	}
	return value, nil
}
