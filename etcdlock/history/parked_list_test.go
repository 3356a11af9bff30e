package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestWhatIsParkedIsListedInTheOrderInWhichItCameOverAllPages(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReader(t, e)
	begin := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	var want []idem.ExecutionID
	for i := range 70 {
		l := lockIn(fmt.Sprint("w", i*31%70), fmt.Sprint("event ", i*31%70))
		l.Route = fmt.Sprint("r", i%7)
		l.Parked = &idem.Parked{Since: begin.Add(time.Duration(i/2) * time.Minute), On: idem.ParkLocked}
		place, err := protocol.EncodeLock(&l)
		if err != nil {
			t.Fatal(err)
		}
		k := s.options.Layout.Keys(&l)
		for key, value := range map[string][]byte{k.Entry: place, k.Index: protocol.EncodeIndex(protocol.IndexOf(&l))} {
			if _, err := e.Client.Put(within(t, patience), key, string(value)); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, l.Execution)
		if i%2 == 1 { // two came at one time
			slices.Sort(want[i-1:])
		}
	}
	for name, c := range map[string]struct {
		q    idem.ParkedQuery
		want int
	}{
		"all": {idem.ParkedQuery{}, 70}, "of a route": {idem.ParkedQuery{Route: "r3"}, 10},
		"of some workflows": {idem.ParkedQuery{Matches: func(f *idem.Found) bool {
			return strings.HasPrefix(f.Workflow(), "w3")
		}}, 11},
	} {
		for _, limit := range []int{0, 1, 7} {
			var got []idem.ExecutionID
			for q := c.q; ; {
				q.PageSize = limit
				page, err := s.ParkedExecutions(within(t, patience), q)
				if err != nil || limit > 0 && len(page.Executions) > limit {
					t.Fatalf("%d executions, %v", len(page.Executions), err)
				}
				got = append(got, ids(page.Executions)...)
				if q.Cursor = page.NextCursor; q.Cursor == "" {
					break
				}
			}
			places := make([]int, len(got))
			for i, id := range got {
				places[i] = slices.Index(want, id)
			}
			if len(got) != c.want || !slices.IsSorted(places) || len(slices.Compact(places)) != c.want {
				t.Errorf("%s, pages of %d: %v, want %d in order", name, limit, places, c.want)
			}
		}
	}
	for _, cursor := range []string{"x", "1/x", "x/" + string(want[0])} {
		if _, err := s.ParkedExecutions(within(t, patience), idem.ParkedQuery{Cursor: cursor}); !errors.Is(err,
			idem.ErrCursor) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}
