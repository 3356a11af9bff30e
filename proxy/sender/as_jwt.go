package sender

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"

	"github.com/golang-jwt/jwt/v5"
)

// asJWT returns the scheme of a sender that sends a JSON Web Token with the digest of the body.
// fixed.Tolerance is the age that the sender documents for iat, or 0 if its tokens have no time.
func asJWT(fixed Config) scheme {
	covers := jwtCovers(fixed)
	covers.Time = fixed.Tolerance > 0
	return scheme{
		new: func(c Config) (Verifier, error) {
			if !covers.Time {
				c.Tolerance = 0
			}
			return newJWT(fixed.withRoute(c))
		},
		covers:    func(Config) Coverage { return covers },
		tolerance: fixed.Tolerance, aged: covers.Time,
	}
}

// addJWT adds a JSON Web Token with the digest of the body. The secret signs it; for ES256 the
// secret is a private key.
func (s *sample) addJWT(header string, method jwt.SigningMethod, bodyHash string, claims jwt.MapClaims) {
	sum := sha256.Sum256(s.request.Body)
	claims[bodyHash] = hex.EncodeToString(sum[:])
	var key any = s.secret
	if method == jwt.SigningMethodES256 {
		private, err := privateKey(s.secret)
		if _, ok := private.(*ecdsa.PrivateKey); !ok {
			s.keepError(cmp.Or(err, errPrivateKey))
			return
		}
		key = private
	}
	signed, err := jwt.NewWithClaims(method, claims).SignedString(key)
	s.keepError(err)
	s.addSigned(header, signed)
}
