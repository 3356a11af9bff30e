package etcdlock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// cursor is the last key that a page has looked at. It is handed out to whoever asked for the page, and that key may be of a workflow which they
// may not see: so it says hashes only.
type cursor struct {
	kind byte     // one letter of the kind of the key
	w    [8]byte  // XXH64 of the workflow, as in the key
	name [4]byte  // of SHA-256 of the workflow as in the key; zero for a record, whose key does not name it
	key  idem.Key // of the event; "" for a workflow's lock
}

// letters are the kinds of keys that are listed, by their letter in a cursor.
var letters = map[byte]string{'q': protocol.KindQueue, 'l': protocol.KindLocks, 'k': protocol.KindRecords}

const (
	cursorHead = 1 + 8 + 4
	maxCursor  = 512 // far more than the longest
)

var cursorEncoding = base64.RawURLEncoding.Strict()

// cursorOf is false for a key that is none of ours.
func cursorOf(y protocol.Layout, key string) (c cursor, ok bool) {
	parts := strings.Split(strings.TrimPrefix(key, y.Root), "/")
	for letter, kind := range letters {
		if parts[0]+"/" == kind {
			c.kind = letter
		}
	}
	if c.kind == 0 || len(parts) < 3 || len(parts[1]) != 16 {
		return c, false
	}
	if _, err := hex.Decode(c.w[:], []byte(parts[1])); err != nil {
		return c, false
	}
	switch {
	case c.kind == 'k':
		c.key = idem.Key(parts[2])
		return c, len(parts) == 3
	case len(parts) == 4:
		c.key = idem.Key(parts[3])
	}
	c.name = nameHash(parts[2])
	return c, len(parts) == 4 || c.kind == 'l' && len(parts) == 3
}

func nameHash(escaped string) [4]byte {
	sum := sha256.Sum256([]byte(escaped))
	return [4]byte(sum[:4])
}

func (c cursor) String() string {
	b := slices.Concat([]byte{c.kind}, c.w[:], c.name[:], []byte(c.key))
	return cursorEncoding.EncodeToString(b)
}

// parseCursor reads a cursor that came from outside. The error is idem.ErrCursor.
func parseCursor(text string) (c cursor, err error) {
	if len(text) > maxCursor {
		return c, idem.ErrCursor
	}
	b, err := cursorEncoding.DecodeString(text)
	if err != nil || len(b) < cursorHead || letters[b[0]] == "" {
		return c, idem.ErrCursor
	}
	c = cursor{kind: b[0], w: [8]byte(b[1:9]), name: [4]byte(b[9:cursorHead]), key: idem.Key(b[cursorHead:])}
	if strings.ContainsAny(string(c.key), "/\x00") || c.key == "" && c.kind != 'l' || c.kind == 'k' && c.name != [4]byte{} {
		return c, idem.ErrCursor
	}
	return c, nil
}

func (c cursor) workflow() uint64 { return binary.BigEndian.Uint64(c.w[:]) }

// after is the first key that may follow the one that c was made of. The name of the workflow is found again among those with its hash, nearly
// always one; where it has gone with all its keys, what follows is behind them all.
func (s *Control) after(ctx context.Context, c cursor) (string, error) {
	base := s.layout.Root + letters[c.kind] + hex.EncodeToString(c.w[:]) + "/"
	if c.kind == 'k' {
		return base + string(c.key) + "\x00", nil
	}
	end := clientv3.GetPrefixRangeEnd(base)
	for from := base; ; {
		answers, _, err := s.read(ctx, clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
		if err != nil {
			return "", fmt.Errorf("find the place of the cursor: %w", err)
		}
		kv := protocol.First(answers[0])
		if kv == nil {
			return end, nil
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), base), "/")
		switch {
		case nameHash(name) != c.name:
			from = base + name + "0" // "0" follows "/": behind all keys of that name
		case c.key == "":
			return base + name + "\x00", nil
		default:
			return base + name + "/" + string(c.key) + "\x00", nil
		}
	}
}
