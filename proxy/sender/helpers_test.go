package sender

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha1"
	"encoding/base64"
	"hash"
)

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func publicBytes(key crypto.Signer) []byte { return key.Public().(ed25519.PublicKey) }

func sha1New() hash.Hash { return sha1.New() }
