package admin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"hooklock/idem"
)

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
