package requests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkPut is a Put into a folder, which syncs file and folder, beside a plain write of the
// same bytes, which promises nothing, and beside sealing them. The ratio to the plain write is what
// durability costs on this disk.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{2 << 10, 64 << 10, 1 << 20} {
		bytes := make([]byte, size)
		b.Run(fmt.Sprintf("dir/%dKiB", size>>10), func(b *testing.B) {
			d, err := OpenDir(filepath.Join(b.TempDir(), "requests"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = d.Close(context.Background()) }()
			b.SetBytes(int64(size))
			for n := range b.N {
				if err := d.Put(b.Context(), execution(byte(n)), bytes); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("write/%dKiB", size>>10), func(b *testing.B) {
			folder := b.TempDir()
			b.SetBytes(int64(size))
			for n := range b.N {
				if err := os.WriteFile(filepath.Join(folder, string(execution(byte(n)))), bytes, 0o600); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("seal/%dKiB", size>>10), func(b *testing.B) {
			keys, err := ParseKeys(keyLine("k1", 1))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				keys.Seal(execution(1), bytes)
			}
		})
	}
}
