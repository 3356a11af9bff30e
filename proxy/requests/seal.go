package requests

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"hooklock/idem"
	"hooklock/proxy/kept"
)

// sealMagic begins sealed bytes; its last byte is the version. One byte with the length of the
// key's ID, the ID, the nonce, the ciphertext and the tag follow.
const sealMagic = "HLS\x01"

const (
	maxKeyID  = 32
	maxKeys   = 100
	keyLen    = 32 // AES-256
	nonceLen  = 12
	tagLen    = 16
	unsealed  = "unsealed"
	makeAKey  = "`openssl rand -base64 32` makes one"
	keyLetter = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

	sealOverhead = len(sealMagic) + 1 + maxKeyID + nonceLen + tagLen
)

// ErrTampered is returned for sealed bytes that were changed, cut off, or kept for another
// execution.
var ErrTampered = errors.New("the bytes of this request are not what was sealed for it: they were changed or belong " +
	"to another execution; nothing of them is used")

// Keys seal and open. The first one seals; each opens what it has sealed. They are never changed: a
// new file is a new Keys. The zero value and nil seal nothing, and open what is not sealed.
type Keys struct {
	keys []key
}

// key is one line of the file. The one with the ID unsealed has no cipher.
type key struct {
	id  string
	gcm cipher.AEAD
}

// ParseKeys reads a key file: a line for each key, its ID and 32 bytes in base64 with a space
// between. Empty lines and those that begin with # mean nothing. The line `unsealed` stands for no
// key: at the top nothing is sealed any more, below it bytes from before the first key are read,
// too. An error names the line and what to do, and never the key.
func ParseKeys(text string) (*Keys, error) {
	k := &Keys{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		one, err := parseKey(line)
		if err == nil && k.findKey(one.id) != nil {
			err = fmt.Errorf("%s is there a second time; give each key an ID of its own", one.id)
		}
		if err != nil {
			return nil, fmt.Errorf("key_file, line %d: %w", number, err)
		}
		if k.keys = append(k.keys, one); len(k.keys) > maxKeys {
			return nil, fmt.Errorf("key_file has more than %d keys; remove old ones that seal nothing that is still "+
				"kept", maxKeys)
		}
	}
	if len(k.keys) == 0 {
		return nil, errors.New("key_file has no key; write a line with an ID and a key, such as `k1 …`: " + makeAKey)
	}
	return k, nil
}

func parseKey(line string) (key, error) {
	if line == unsealed {
		return key{id: unsealed}, nil
	}
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return key{}, errors.New("a line has an ID, a space and a key in base64")
	}
	id := fields[0]
	if id == unsealed || len(id) > maxKeyID || strings.Trim(id, keyLetter) != "" {
		return key{}, fmt.Errorf("the first word is the key's ID: at most %d letters, digits, -, _ and ., and not "+
			"the word %s", maxKeyID, unsealed)
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(fields[1])
	if err != nil || len(secret) != keyLen {
		return key{}, fmt.Errorf("the second word is not %d bytes in base64: %s", keyLen, makeAKey)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, errors.New("the key cannot be used: " + makeAKey)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, errors.New("this machine has no AES-GCM: leave key_file out, or run elsewhere")
	}
	return key{id, gcm}, nil
}

func (k *Keys) findKey(id string) *key {
	for i := range k.keys {
		if k.keys[i].id == id {
			return &k.keys[i]
		}
	}
	return nil
}

// Seal returns the bytes to store for plain: new bytes that the caller owns, or plain itself if
// nothing is sealed.
func (k *Keys) Seal(execution idem.ExecutionID, plain []byte) []byte {
	if k == nil || len(k.keys) == 0 || k.keys[0].gcm == nil {
		return plain
	}
	first := &k.keys[0]
	b := make([]byte, 0, len(plain)+sealOverhead)
	b = append(b, sealMagic...)
	b = append(b, byte(len(first.id)))
	b = append(b, first.id...)
	return first.gcm.Seal(b, nil, plain, additionalData(b, execution))
}

// Open returns what was sealed for execution, in new bytes, or sealed itself if it was not sealed.
// It returns ErrTampered, ErrFormat, or an error that says which key is missing and what to do.
func (k *Keys) Open(execution idem.ExecutionID, sealed []byte) ([]byte, error) {
	if !bytes.HasPrefix(sealed, []byte(sealMagic)) {
		return k.openPlain(sealed)
	}
	id, rest, err := sealedBy(sealed)
	switch {
	case err != nil:
		return nil, err
	case k == nil || len(k.keys) == 0:
		return nil, fmt.Errorf("this request is sealed with the key %s, and there is no key_file: set "+
			"park_store.key_file to a file with that key", id)
	}
	found := k.findKey(id)
	if found == nil || found.gcm == nil {
		return nil, fmt.Errorf("key %s is not in key_file: put the old key back below the new one", id)
	}
	plain, err := found.gcm.Open(nil, nil, rest, additionalData(sealed[:len(sealed)-len(rest)], execution))
	if err != nil {
		return nil, fmt.Errorf("%w; or key_file has another key under the ID %s than the one that sealed them",
			ErrTampered, id)
	}
	return plain, nil
}

func (k *Keys) openPlain(b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte(kept.Magic)) {
		return nil, ErrFormat
	}
	if k != nil && len(k.keys) > 0 && k.findKey(unsealed) == nil {
		return nil, errors.New("this request is not sealed, and key_file says that requests are: if it is from " +
			"before the first key, add the line `" + unsealed + "` below the keys")
	}
	return b, nil
}

// sealedBy returns the ID of the key that has sealed b, and what follows it.
func sealedBy(b []byte) (id string, rest []byte, err error) {
	b = b[len(sealMagic):]
	if len(b) == 0 || b[0] == 0 || b[0] > maxKeyID || len(b) < 1+int(b[0])+nonceLen+tagLen {
		return "", nil, ErrFormat
	}
	id, rest = string(b[1:1+b[0]]), b[1+b[0]:]
	if strings.Trim(id, keyLetter) != "" {
		return "", nil, ErrFormat
	}
	return id, rest, nil
}

// additionalData returns what the tag covers besides the bytes: what stands before them, and their
// execution, so that bytes of one event are not taken for those of another.
func additionalData(header []byte, execution idem.ExecutionID) []byte {
	return append(bytes.Clone(header), execution...)
}
