package sender

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"

	"github.com/golang-jwt/jwt/v5"
)

// asJWT is asHMAC for a sender whose token, a JSON Web Token, has the digest of the body. Its Tolerance is the age that the sender documents for
// iat; 0: its tokens say no time.
func asJWT(fixed Config) scheme {
	covers := jwtCovers(fixed)
	covers.Time = fixed.Tolerance > 0
	return scheme{
		new: func(c Config) (Verifier, error) {
			if !covers.Time {
				c.Tolerance = 0
			}
			return newJWT(fixed.under(c))
		},
		covers:    func(Config) Coverage { return covers },
		tolerance: fixed.Tolerance, aged: covers.Time,
	}
}

// token adds a JSON Web Token with the digest of the body, signed with the secret or, for ES256, with the private key that it is.
func (s *sample) token(header string, method jwt.SigningMethod, bodyHash string, claims jwt.MapClaims) error {
	if s.unsigned {
		return nil
	}
	sum := sha256.Sum256(s.request.Body)
	claims[bodyHash] = hex.EncodeToString(sum[:])
	var key any = s.secret
	if method == jwt.SigningMethodES256 {
		private, err := privateKey(s.secret)
		if err != nil {
			return err
		}
		if _, ok := private.(*ecdsa.PrivateKey); !ok {
			return errPrivateKey
		}
		key = private
	}
	signed, err := jwt.NewWithClaims(method, claims).SignedString(key)
	if err != nil {
		return err
	}
	s.add(header, signed)
	return nil
}
