package idem

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// ErrExecutionID is returned for a text that is not an execution ID.
var ErrExecutionID = errors.New(`not an execution ID: want "exec_" and 32 letters or digits`)

const executionPrefix = "exec_"

var executionEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewExecutionID makes the ID of one execution. It holds XXH64 of the workflow, the XXH64 half of
// the key and 32 random bits, so its lock and its record are found by prefix. XXH64 can be forged:
// a caller that looks up an execution must compare the whole ID with the one in the value that it
// found.
func NewExecutionID(workflow string, key Key, random [4]byte) ExecutionID {
	var b [ExecutionIDBytes]byte
	binary.BigEndian.PutUint64(b[0:], xxhash.Sum64String(workflow))
	binary.BigEndian.PutUint64(b[8:], key.hashHalf())
	copy(b[16:], random[:])
	return ExecutionIDOf(b)
}

// ExecutionIDBytes is the length of an ExecutionID in binary.
const ExecutionIDBytes = 20

// ExecutionIDOf returns the ID of these bytes.
func ExecutionIDOf(b [ExecutionIDBytes]byte) ExecutionID {
	var text [len(executionPrefix) + 32]byte
	copy(text[:], executionPrefix)
	executionEncoding.Encode(text[len(executionPrefix):], b[:])
	return ExecutionID(text[:])
}

// Random returns the random bits of the ID; false: the ID was not made of this workflow and key.
func (id ExecutionID) Random(workflow string, key Key) (random [4]byte, ok bool) {
	b, err := id.Binary()
	copy(random[:], b[16:])
	return random, err == nil && binary.BigEndian.Uint64(b[0:]) == xxhash.Sum64String(workflow) &&
		binary.BigEndian.Uint64(b[8:]) == key.hashHalf()
}

// Parse returns XXH64 of the workflow, and the XXH64 half of the key.
func (id ExecutionID) Parse() (workflow, key uint64, err error) {
	b, err := id.Binary()
	return binary.BigEndian.Uint64(b[0:]), binary.BigEndian.Uint64(b[8:]), err
}

// HashesOfPrefix returns what the beginning of an ID says of the hash of its workflow and of the
// half of its key: as many of their hex digits as are certain. It returns "" for a text that is no
// beginning of an ID.
func HashesOfPrefix(beginning string) (workflow, key string) {
	letters, ok := strings.CutPrefix(beginning, executionPrefix)
	letters = letters[:min(len(letters), 32)]
	full := letters + strings.Repeat("a", 32-len(letters))
	b, err := executionEncoding.DecodeString(full)
	if !ok || err != nil || len(b) != 20 {
		return "", ""
	}
	digits := hex.EncodeToString(b)[:5*len(letters)/4]
	return digits[:min(len(digits), 16)], digits[min(len(digits), 16):min(len(digits), 32)]
}

// Binary returns the ID in binary, and ErrExecutionID for a text that is none.
func (id ExecutionID) Binary() (b [ExecutionIDBytes]byte, err error) {
	if len(id) != len(executionPrefix)+32 || id[:len(executionPrefix)] != executionPrefix {
		return b, ErrExecutionID
	}
	// The decoder skips line breaks, so only the full count proves 32 letters.
	if n, err := executionEncoding.Decode(b[:], []byte(id[len(executionPrefix):])); err != nil || n != len(b) {
		return [ExecutionIDBytes]byte{}, ErrExecutionID
	}
	return b, nil
}

// hashHalf returns the XXH64 half as a number; 0 for a text that is not a key.
func (k Key) hashHalf() uint64 {
	n, _ := strconv.ParseUint(k.Short(), 16, 64)
	return n
}

// KeyBytes is the length of a Key in binary.
const KeyBytes = 24

// Binary returns k in binary, and whether KeyOf restores k from it. A text that is not a key gets
// bytes of its own, with the same first half.
func (k Key) Binary() (b [KeyBytes]byte, ok bool) {
	if len(k) == keyLength && k[16] == '-' {
		_, err := hex.Decode(b[:8], []byte(k[:16]))
		_, err2 := hex.Decode(b[8:], []byte(k[17:]))
		if text := keyText(b); err == nil && err2 == nil && string(text[:]) == string(k) {
			return b, true
		}
	}
	sum := sha256.Sum256([]byte(k))
	binary.BigEndian.PutUint64(b[:8], k.hashHalf())
	copy(b[8:], sum[:])
	return b, false
}

// KeyOf returns the key of these bytes.
func KeyOf(b [KeyBytes]byte) Key {
	text := keyText(b)
	return Key(text[:])
}

func keyText(b [KeyBytes]byte) (text [keyLength]byte) {
	hex.Encode(text[:16], b[:8])
	text[16] = '-'
	hex.Encode(text[17:], b[8:])
	return text
}

const keyLength = 16 + 1 + 32

// HashEventID returns the first half of the keys of all events with this ID, in any route and
// workflow: its XXH64. If the payload is the event, the ID is its fingerprint in hex.
func HashEventID(eventID string) uint64 { return xxhash.Sum64String(eventID) }

// MakeKey makes the key of two hashes: the short one picks the shard, the long one makes a
// collision impossible to forge.
func MakeKey(short uint64, long [16]byte) Key {
	var b [KeyBytes]byte
	binary.BigEndian.PutUint64(b[:], short)
	copy(b[8:], long[:])
	return KeyOf(b)
}

// RandomKey makes a key that no other delivery has, for routes without idempotency. random is
// crypto/rand.Reader or as good.
func RandomKey(random io.Reader) (Key, error) {
	var b [24]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return MakeKey(binary.BigEndian.Uint64(b[:]), [16]byte(b[8:])), nil
}
