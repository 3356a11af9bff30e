package requests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"hooklock/idem"
	"hooklock/proxy/kept"
)

// ErrTooLarge is returned for a request that is too large for the ledger, if there is no store for
// longer ones.
var ErrTooLarge = errors.New("the request is above park_store.inline, and neither park_store.dir nor park_store.s3 " +
	"is set: set one")

// referenceMagic begins a value that refers to a store. The kind of the store follows, the number
// of bytes there, and their SHA-256.
const referenceMagic = "HLB\x01"

const referenceLen = len(referenceMagic) + 1 + 8 + sha256.Size

// Kind is the kind of the store that has the bytes, to name a store that is not configured any
// more. Its numbers are stored in etcd.
type Kind byte

// The kinds of stores. Nowhere means that there is none.
const (
	Nowhere Kind = 0
	InDir   Kind = 1
	InS3    Kind = 2
)

// String returns the setting of that store.
func (k Kind) String() string {
	switch k {
	case InDir:
		return "park_store.dir"
	case InS3:
		return "park_store.s3"
	}
	return "no store"
}

// Keeper turns requests into the values that the ledger writes when it parks, and back. It is safe
// for concurrent use.
type Keeper struct {
	store  Store // nil: there is none
	kind   Kind
	inline int
	keys   atomic.Pointer[Keys]
}

// NewKeeper returns a Keeper that puts requests of at most inline bytes, encoded, into the ledger's
// value, and longer ones into store. A nil store, of the kind Nowhere, takes none. keys may be nil:
// nothing is sealed.
func NewKeeper(inline int, kind Kind, store Store, keys *Keys) *Keeper {
	k := &Keeper{store: store, kind: kind, inline: inline}
	k.SetKeys(keys)
	return k
}

// SetKeys replaces the keys.
func (k *Keeper) SetKeys(keys *Keys) { k.keys.Store(keys) }

// Keep returns the value for the transaction that parks: the request itself, or a reference to the
// store, which then has it durably. The caller owns the value. It calls Keep before the
// transaction; if that is not made, Drop removes what Keep has stored, or else a Sweeper does.
// ErrTooLarge: no place can store it.
func (k *Keeper) Keep(ctx context.Context, execution idem.ExecutionID, r *Request) ([]byte, error) {
	plain, err := r.Marshal()
	if err != nil {
		return nil, err
	}
	b := k.keys.Load().Seal(execution, plain)
	if len(b) <= k.inline {
		return b, nil
	}
	if k.store == nil {
		return nil, ErrTooLarge
	}
	if err := k.store.Put(ctx, execution, b); err != nil {
		return nil, err
	}
	return newReference(k.kind, b), nil
}

// Fetch returns the request of value, which Keep has made for execution. It takes value over, as
// Unmarshal does. Beside the errors of Store.Get, of Keys.Open and of Unmarshal there is one that
// names the setting which is missing.
func (k *Keeper) Fetch(ctx context.Context, execution idem.ExecutionID, value []byte) (*Request, error) {
	b := value
	if isReference(value) {
		var err error
		if b, err = k.loadSealed(ctx, execution, value); err != nil {
			return nil, err
		}
	}
	plain, err := k.keys.Load().Open(execution, b)
	if err != nil {
		return nil, err
	}
	return kept.Unmarshal(plain)
}

// loadSealed reads the bytes of a reference. Sealed bytes may be others that were sealed for the
// execution: if it was not known whether a first park had succeeded, the request was stored a
// second time, under another nonce and perhaps another key, and either reference may have been the
// one to stay. They prove by themselves what they are.
func (k *Keeper) loadSealed(ctx context.Context, execution idem.ExecutionID, value []byte) ([]byte, error) {
	if err := k.checkReference(value); err != nil {
		return nil, err
	}
	b, err := k.store.Get(ctx, execution)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(newReference(k.kind, b), value) && !bytes.HasPrefix(b, []byte(sealMagic)) {
		return nil, ErrTampered
	}
	return b, nil
}

// Drop deletes what Keep has stored for value. It may be called when the ledger does not have value
// any more.
func (k *Keeper) Drop(ctx context.Context, execution idem.ExecutionID, value []byte) error {
	if !isReference(value) {
		return nil
	}
	if err := k.checkReference(value); err != nil {
		return err
	}
	return k.store.Delete(ctx, execution)
}

// Rekeep converts the value of one execution to that of another one: sealed bytes, and those in a
// store, are bound to their execution. Bytes of the first one in a store stay there, until they are
// dropped or swept.
func (k *Keeper) Rekeep(ctx context.Context, from, to idem.ExecutionID, value []byte) ([]byte, error) {
	r, err := k.Fetch(ctx, from, value)
	if err != nil {
		return nil, err
	}
	return k.Keep(ctx, to, r)
}

// Delete is Drop for a caller that no longer has the value, but knows how many bytes of the request
// were stored.
func (k *Keeper) Delete(ctx context.Context, execution idem.ExecutionID, size int64) error {
	if k.store == nil || size <= int64(k.inline) {
		return nil
	}
	return k.store.Delete(ctx, execution)
}

// checkReference refuses a reference to another store than the configured one.
func (k *Keeper) checkReference(value []byte) error {
	if len(value) != referenceLen {
		return ErrFormat
	}
	if kind := Kind(value[len(referenceMagic)]); kind != k.kind || k.store == nil {
		return fmt.Errorf("the bytes of this request are in %s, which is not set: set it until all of them have run",
			kind)
	}
	return nil
}

// Size implements proxy.Requests by Size.
func (k *Keeper) Size(value []byte) (int64, error) { return Size(value) }

// Size returns how many bytes value stands for, in the ledger or in the store. ErrFormat: Keep did
// not make it.
func Size(value []byte) (int64, error) {
	switch {
	case !isReference(value):
		return int64(len(value)), nil
	case len(value) != referenceLen:
		return 0, ErrFormat
	}
	return int64(binary.BigEndian.Uint64(value[len(referenceMagic)+1:])), nil
}

func isReference(value []byte) bool { return bytes.HasPrefix(value, []byte(referenceMagic)) }

func newReference(kind Kind, b []byte) []byte {
	value := make([]byte, 0, referenceLen)
	value = append(value, referenceMagic...)
	value = append(value, byte(kind))
	value = binary.BigEndian.AppendUint64(value, uint64(len(b)))
	sum := sha256.Sum256(b)
	return append(value, sum[:]...)
}
