package naming

import "testing"

func TestADeliverySaysWhereItStandsInItsScope(t *testing.T) {
	keys, err := NewKeys(KeySpec{
		Route: "r", Workflow: "w", EventID: "{body.id}", OrderBy: "{body.at ?? header.X-At}",
		OrderScope: "{body.obj}/{body.part}", OrderUnit: "s",
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(body, header string) Names {
		t.Helper()
		m := Message{Method: []byte("POST"), Body: []byte(body)}
		if header != "" {
			m.Fields = []Field{{Name: []byte("X-At"), Value: []byte(header)}}
		}
		n, err := keys.Name(&m)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := read(`{"id":"1","at":17,"obj":"a","part":"b"}`, "")
	if first.Ordered != OrderedOK || first.Order == nil || first.Order.At != "17" || first.Order.Scope != "a/b" ||
		first.Order.Unit != "s" || len(first.Order.ScopeKey) != 32 {
		t.Fatalf("%+v %+v", first, first.Order)
	}
	for body, same := range map[string]bool{
		`{"id":"2","at":"3.5","obj":"a","part":"b"}`:                  true,
		`{"id":"2","at":17,"obj":"a/b","part":""}`:                    false,
		`{"id":"2","at":17,"obj":"c","part":"b"}`:                     false,
		`{"id":"2","at":"2026-11-22T10:00:00Z","obj":"a","part":"b"}`: false, // a time is not held against a number
	} {
		n := read(body, "")
		if got := n.Order != nil && n.Order.ScopeKey == first.Order.ScopeKey; got != same {
			t.Errorf("%s has the mark of the first: %v", body, got)
		}
	}
	if n := read(`{"id":"1","obj":"a","part":"b"}`, "18"); n.Order == nil || n.Order.At != "18" ||
		n.Order.ScopeKey != first.Order.ScopeKey {
		t.Errorf("the second place is not read: %+v", n.Order)
	}
	for body, want := range map[string]Ordered{
		`{"id":"1","obj":"a","part":"b"}`:                                 OrderedMissing,
		`{"id":"1","at":17,"obj":"a"}`:                                    OrderedMissing,
		`{"id":"1","at":"soon","obj":"a","part":"b"}`:                     OrderedUnreadable,
		`{"id":"1","at":17,"at":18,"obj":"a","part":"b"}`:                 OrderedAmbiguous,
		`{"id":"1","at":17,"obj":"` + string(long(600)) + `","part":"b"}`: OrderedTooLong,
	} {
		if n := read(body, ""); n.Ordered != want || n.Order != nil || n.Key == "" {
			t.Errorf("%.60s: %q, %+v; want %q and no place", body, n.Ordered, n.Order, want)
		}
	}
}

func long(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

func TestARouteThatDoesNotAskReadsNoOrder(t *testing.T) {
	keys, err := NewKeys(KeySpec{Route: "r", Workflow: "w", EventID: "{body.id}"})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := keys.Name(&Message{Body: []byte(`{"id":"1","at":17}`)}); err != nil || n.Order != nil ||
		n.Ordered != "" {
		t.Errorf("%+v %v", n, err)
	}
	for _, spec := range []KeySpec{{OrderBy: "always"}, {OrderBy: "{body.}"},
		{OrderBy: "{body.a}", OrderScope: "{nothing}"}} {
		spec.Workflow = "w"
		if _, err := NewKeys(spec); err == nil {
			t.Errorf("%+v is taken", spec)
		}
	}
}
