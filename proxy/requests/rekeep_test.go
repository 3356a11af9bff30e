package requests

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// TestARequestThatRunsAgainBelongsToItsNewExecution, sealed or in a store.
func TestARequestThatRunsAgainBelongsToItsNewExecution(t *testing.T) {
	for name, inline := range map[string]int{"sealed in the ledger": 1 << 20, "sealed in a folder": 0} {
		t.Run(name, func(t *testing.T) {
			d, err := OpenDir(t.TempDir() + "/requests")
			if err != nil {
				t.Fatal(err)
			}
			keys, err := ParseKeys(keyLine("k1", 1))
			if err != nil {
				t.Fatal(err)
			}
			k := NewKeeper(inline, InDir, d, keys)
			t.Cleanup(func() { _ = k.Close(context.Background()) })
			value, err := k.Keep(t.Context(), execution(1), aRequest())
			if err != nil {
				t.Fatal(err)
			}
			again, err := k.Rekeep(t.Context(), execution(1), execution(2), bytes.Clone(value))
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.Fetch(t.Context(), execution(2), again)
			if err != nil || !bytes.Equal(got.Body, aRequest().Body) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestARequestThatIsKeptAgainIsThereForBothReferences: a park whose answer got lost is made again,
// perhaps with another key, and either may have been applied. A sealed request proves by itself
// whose it is.
func TestARequestThatIsKeptAgainIsThereForBothReferences(t *testing.T) {
	rolled := keyLine("k2", 2) + keyLine("k1", 1)
	for name, c := range map[string]struct{ before, after string }{
		"not sealed":               {"", ""},
		"sealed":                   {keyLine("k1", 1), keyLine("k1", 1)},
		"the key is rolled":        {keyLine("k1", 1), rolled},
		"the first key has come":   {"unsealed\n" + keyLine("k1", 1), keyLine("k1", 1)},
		"a late first one is last": {rolled, keyLine("k1", 1) + keyLine("k2", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemory()
			k := NewKeeper(0, InDir, store, nil)
			var references [][]byte
			for _, text := range []string{c.before, c.after} {
				if text != "" {
					k.SetKeys(keysOf(t, text))
				}
				references = append(references, keep(t, k, execution(1), aRequest()))
			}
			for n, value := range references {
				if got, err := k.Fetch(t.Context(), execution(1), value); err != nil ||
					!bytes.Equal(got.Body, aRequest().Body) {
					t.Errorf("reference %d: %+v, %v", n+1, got, err)
				}
			}
			b := store.kept[execution(1)]
			b[len(b)-1] ^= 1
			for n, value := range references {
				if _, err := k.Fetch(t.Context(), execution(1), value); !errors.Is(err, ErrTampered) {
					t.Errorf("changed, reference %d: %v", n+1, err)
				}
			}
		})
	}
}
