package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// through goes over sorted keys as readPage does, batch keys at a time; it says how many reads that
// took and how many keys the largest counted.
func (w *windows) through(tb testing.TB, keys []string, batch, most int) (got []string, reads, counted int) {
	tb.Helper()
	for !w.isOver() && len(got) < most {
		end := w.windowEnd()
		if end <= w.from || end > w.end {
			tb.Fatalf("a window from %q to %q, of a range that ends at %q", w.from, end, w.end)
		}
		first, _ := slices.BinarySearch(keys, w.from)
		behind, _ := slices.BinarySearch(keys, end)
		in, last := keys[first:behind], ""
		reads, counted = reads+1, max(counted, len(in))
		if some := in[:min(batch, len(in))]; len(some) > 0 {
			got = append(got, some...)
			if len(some) < len(in) {
				last = some[len(some)-1]
			}
		}
		w.advance(end, last, int64(len(in)))
	}
	return got, reads, counted
}

func TestWindowsShowEachKeyOnceAndInOrder(t *testing.T) {
	t.Parallel()
	const root = "/hooklock/v1/" + protocol.KindLocks
	for name, key := range map[string]func(i int) string{
		"one workflow": func(i int) string {
			return protocol.Hash16("w") + "/" + protocol.Hash16(fmt.Sprint(i)) + "-x"
		},
		"a workflow for each": func(i int) string {
			return protocol.Hash16(fmt.Sprint(i)) + "/" + protocol.Hash16(fmt.Sprint(i)) + "-x"
		},
		"a hundred workflows": func(i int) string {
			return protocol.Hash16(fmt.Sprint(i%100)) + "/" + protocol.Hash16(fmt.Sprint(i)) + "-x"
		},
		"a large workflow among small ones": func(i int) string {
			return protocol.Hash16(fmt.Sprint(max(0, i-1000))) + "/" + protocol.Hash16(fmt.Sprint(i)) + "-x"
		},
		"keys that are not ours": func(i int) string { return fmt.Sprintf("zz%d/\x00%d", i, i) },
	} {
		for _, n := range []int{0, 1, 40, 3000, 60_000} {
			var keys []string
			for i := range n {
				keys = append(keys, root+key(i))
			}
			slices.Sort(keys)
			all := newWindows(root, root, clientv3.GetPrefixRangeEnd(root))
			got, reads, _ := all.through(t, keys, 32, n+1)
			if !slices.Equal(got, keys) || reads > 10+n/8 {
				t.Errorf("%s: %d of %d keys in %d reads", name, len(got), n, reads)
			}
			for _, at := range []int{n / 3, n / 2, n - 1} { // a page somewhere in the middle
				if n < 3000 || name == "keys that are not ours" {
					continue
				}
				most := manyKeys
				if name == "one workflow" { // whose keys have the same hash
					most = n
				}
				page := newWindows(root, keys[at]+"\x00", clientv3.GetPrefixRangeEnd(root))
				got, reads, counted := page.through(t, keys, 32, 100)
				if want := keys[at+1 : min(at+1+len(got), n)]; !slices.Equal(got, want) || reads > 14 ||
					counted > most {
					t.Errorf("%s: a page of %d keys took %d reads, and the largest counted %d of %d", name, len(got),
						reads, counted, n)
				}
			}
		}
	}
}

// Whatever a cursor says, it is a place in its list, from which the list comes to its end.
func FuzzPlaceOfACursor(f *testing.F) {
	s := NewReader(&Options{Layout: protocol.NewLayout("/p")}, nil)
	for _, w := range []string{"w", "a/b", "a-b", "a", "ä:1", "100%", "日本/語", "a b", "..", "%FF"} {
		scope := idem.Scope{Workflow: w, Key: "00000000000000ff-01"}
		for _, key := range []string{s.options.Layout.Lock(scope), s.options.Layout.Queued(scope),
			s.options.Layout.Slot(w, 1)} {
			f.Add(strings.TrimPrefix(key, s.options.Layout.Root))
		}
	}
	f.Add(protocol.KindLocks + "\xff")
	f.Add(protocol.KindLocks + "../sessions/")
	f.Fuzz(func(t *testing.T, cursor string) {
		for _, prefix := range []string{s.options.Layout.All(protocol.KindLocks),
			s.options.Layout.All(protocol.KindSlots),
			s.options.Layout.All(protocol.KindSlotWaiters)} {
			keys, err := s.pageRange(strings.TrimPrefix(prefix, s.options.Layout.Root), cursor)
			if err != nil {
				if !errors.Is(err, idem.ErrCursor) {
					t.Fatal(err)
				}
				continue
			}
			if !strings.HasPrefix(keys.from, prefix) {
				t.Fatalf("%q is no place below %s", keys.from, prefix)
			}
			if got, _, _ := keys.through(t, nil, 1, 1); len(got) > 0 {
				t.Fatalf("found %q among nothing", got)
			}
		}
	})
}
