package requests

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"

	"hooklock/idem"
)

// memory is a Store that lasts as long as a test.
type memory struct {
	mu   sync.Mutex
	kept map[idem.ExecutionID][]byte
	fail error
}

func newMemory() *memory { return &memory{kept: map[idem.ExecutionID][]byte{}} }

func (m *memory) Put(_ context.Context, e idem.ExecutionID, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		m.kept[e] = bytes.Clone(b)
	}
	return m.fail
}

func (m *memory) Get(_ context.Context, e idem.ExecutionID) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, found := m.kept[e]; found {
		return bytes.Clone(b), m.fail
	}
	return nil, ErrNotKept
}

func (m *memory) Delete(_ context.Context, e idem.ExecutionID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, e)
	return m.fail
}

func (m *memory) List(context.Context) iter.Seq2[idem.ExecutionID, error] {
	return func(yield func(idem.ExecutionID, error) bool) {
		for e := range m.kept {
			if !yield(e, nil) {
				return
			}
		}
		if m.fail != nil {
			yield("", m.fail)
		}
	}
}

func keep(t *testing.T, k *Keeper, e idem.ExecutionID, r *Request) []byte {
	t.Helper()
	value, err := k.Keep(t.Context(), e, r)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAShortRequestIsInTheValueAndALongerOneInTheStore(t *testing.T) {
	short, long := aRequest(), aRequest()
	long.Body = bytes.Repeat([]byte("x"), 1000)
	for _, text := range []string{"", keyLine("k1", 1)} {
		var keys *Keys
		if text != "" {
			keys = keysOf(t, text)
		}
		store := newMemory()
		k := NewKeeper(500, InS3, store, keys)
		inline, outside := keep(t, k, execution(1), short), keep(t, k, execution(2), long)
		if len(store.kept) != 1 || len(outside) != referenceLen {
			t.Fatalf("%d in the store, %d bytes of reference", len(store.kept), len(outside))
		}
		for e, want := range map[idem.ExecutionID]int{execution(1): len(inline),
			execution(2): len(store.kept[execution(2)])} {
			value := map[idem.ExecutionID][]byte{execution(1): inline, execution(2): outside}[e]
			if n, err := Size(value); err != nil || n != int64(want) {
				t.Errorf("the size is %d, %v; want %d", n, err, want)
			}
		}
		if got, err := k.Fetch(t.Context(), execution(2), outside); err != nil || !reflect.DeepEqual(got, long) {
			t.Errorf("the long one: %v", err)
		}
		if got, err := k.Fetch(t.Context(), execution(1), bytes.Clone(inline)); err != nil ||
			!reflect.DeepEqual(got, short) {
			t.Errorf("the short one: %v", err)
		}
		if err := errors.Join(k.Drop(t.Context(), execution(1), inline),
			k.Drop(t.Context(), execution(2), outside)); err != nil {
			t.Error(err)
		}
		if len(store.kept) != 0 {
			t.Error("the bytes are still there")
		}
		if _, err := k.Fetch(t.Context(), execution(2), outside); !errors.Is(err, ErrNotKept) {
			t.Errorf("after the drop: %v", err)
		}
	}
}

func TestTheLargestInlineValueIsInlineToTheByte(t *testing.T) {
	r := aRequest()
	size := len(written(t))
	if value := keep(t, NewKeeper(size, Nowhere, nil, nil), execution(1), r); len(value) != size {
		t.Errorf("%d bytes", len(value))
	}
	if _, err := NewKeeper(size-1, Nowhere, nil, nil).Keep(t.Context(), execution(1), r); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestAStoreThatFailsKeepsNothing(t *testing.T) {
	away := errors.New("away")
	if value, err := NewKeeper(0, InDir, &memory{fail: away}, nil).Keep(t.Context(), execution(1),
		aRequest()); !errors.Is(err, away) || value != nil {
		t.Errorf("got %q, %v", value, err)
	}
}

func TestBytesThatWereExchangedInTheStoreAreRefused(t *testing.T) {
	store := newMemory()
	k := NewKeeper(0, InDir, store, nil)
	value := keep(t, k, execution(1), aRequest())
	other := aRequest()
	other.Body[0]++
	keep(t, k, execution(2), other)
	for name, b := range map[string][]byte{"another's": store.kept[execution(2)],
		"cut off": store.kept[execution(1)][:40], "none": {}} {
		store.kept[execution(1)] = b
		if _, err := k.Fetch(t.Context(), execution(1), value); !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAReferenceToAStoreThatIsNotSetSaysWhichOne(t *testing.T) {
	value := keep(t, NewKeeper(0, InDir, newMemory(), nil), execution(1), aRequest())
	for _, k := range []*Keeper{NewKeeper(0, InS3, newMemory(), nil), NewKeeper(0, Nowhere, nil, nil)} {
		_, err := k.Fetch(t.Context(), execution(1), value)
		if err == nil || !strings.Contains(err.Error(), "park_store.dir, which is not set") {
			t.Errorf("got %v", err)
		}
		if err := k.Drop(t.Context(), execution(1), value); err == nil {
			t.Error("dropped from a store that has it not")
		}
	}
	for _, b := range [][]byte{value[:20], append(bytes.Clone(value), 0)} {
		if _, err := NewKeeper(0, InDir, newMemory(), nil).Fetch(t.Context(), execution(1), b); !errors.Is(err,
			ErrFormat) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func TestKeysAreRolledWhileRequestsAreKept(t *testing.T) {
	k := NewKeeper(1<<20, Nowhere, nil, keysOf(t, keyLine("k1", 1)))
	old := keep(t, k, execution(1), aRequest())
	k.SetKeys(keysOf(t, keyLine("k2", 2)+keyLine("k1", 1)))
	young := keep(t, k, execution(1), aRequest())
	for _, value := range [][]byte{old, young} {
		if got, err := k.Fetch(t.Context(), execution(1), bytes.Clone(value)); err != nil ||
			!reflect.DeepEqual(got, aRequest()) {
			t.Errorf("got %v", err)
		}
	}
	k.SetKeys(keysOf(t, keyLine("k2", 2)))
	if _, err := k.Fetch(t.Context(), execution(1), old); err == nil ||
		!strings.Contains(err.Error(), "put the old key back") {
		t.Errorf("got %v", err)
	}
}
