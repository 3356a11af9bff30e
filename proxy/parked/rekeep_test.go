package parked

import (
	"bytes"
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
			t.Cleanup(func() { _ = k.Close() })
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
