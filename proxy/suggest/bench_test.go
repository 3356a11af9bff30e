package suggest

import (
	"testing"
)

// BenchmarkAdd is what one delivery of the streams costs to learn from.
func BenchmarkAdd(b *testing.B) {
	for _, name := range []string{"an ID in the body, and times of sending", "a form", "XML"} {
		all := streams()[name].deliveries(1)
		b.Run(name, func(b *testing.B) {
			set := NewSet(8 << 20)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				set.Add(all[i%len(all)])
			}
		})
	}
}
