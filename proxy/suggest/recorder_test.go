package suggest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hooklock/idem/naming"
)

// learning runs a recorder, and returns it with what ends it and waits for it.
func learning(limit int) (*Recorder, func()) {
	r := NewRecorder(limit)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	return r, func() { cancel(); <-done }
}

func TestARecorderSuggestsWhatItLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, end := learning(8 << 20)
		defer end()
		s := streams()["an ID in the body, and times of sending"]
		for _, d := range s.deliveries(1) {
			r.Learn(d, "")
			for i := range d.Message.Body { // its memory is used again
				d.Message.Body[i] = 'x'
			}
			time.Sleep(batchEvery / 10)
		}
		found := r.Suggest(time.Time{})
		if len(found.Suggestions) != 1 || found.Passed != 0 {
			t.Fatalf("%+v", found)
		}
		if one := found.Suggestions[0]; one.EventID != s.event || one.Workflow != s.workflow || one.Deliveries != 300 {
			t.Errorf("%+v", one)
		}
		if later := r.Suggest(begin.AddDate(1, 0, 0)); len(later.Suggestions) != 0 {
			t.Errorf("%+v", later.Suggestions[0])
		}
	})
}

func TestOfMuchTrafficSomeEventsAreFollowedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, end := learning(8 << 20)
		defer end()
		m := func(event, attempt int) *naming.Message {
			return &naming.Message{Method: []byte("POST"), Path: []byte("/h"),
				Body: fmt.Appendf(nil, `{"event_id":"e%d","attempt":%d,"customer_id":%d}`, event, attempt, event%7)}
		}
		const all = 20_000
		for event := range all / 2 {
			for attempt := range 2 {
				r.Learn(&Delivery{Route: "h", Path: "/h", At: time.Now(), Status: []int{503, 200}[attempt],
					Message: m(event, attempt)}, fmt.Sprint("e", event))
			}
			time.Sleep(time.Millisecond) // 2000 deliveries in a second
		}
		found := r.Suggest(time.Time{})
		one := found.Suggestions[0]
		if found.Passed < all/2 || one.Deliveries < 500 || one.EventID != "{body.event_id}" ||
			one.Predicted.Repeats*5 < one.Predicted.Events*4 {
			t.Errorf("%d not looked at, %+v %+v", found.Passed, one, one.Predicted)
		}
	})
}

func TestARecorderThatIsOffOrHasEndedKeepsNothing(t *testing.T) {
	if r := NewRecorder(0); r != nil || len(r.Suggest(time.Time{}).Suggestions) > 0 {
		t.Error("0 is a recorder")
	}
	r, end := learning(1 << 20)
	end()
	r.Learn(&Delivery{At: begin, Message: &naming.Message{Path: []byte("/h"), Body: []byte("{}")}}, "")
	if found := r.Suggest(time.Time{}); len(found.Suggestions) > 0 || found.Passed != 1 {
		t.Errorf("%+v", found)
	}
}

func TestSecretsLeaveNoTrace(t *testing.T) {
	set := NewSet(0)
	for i := range 4 {
		set.Add(&Delivery{At: begin, Message: &naming.Message{Path: []byte("/h"), Fields: []naming.Field{
			{Name: []byte("X-Hub-Signature-256"), Value: fmt.Appendf(nil, "sha256=%d", i)},
			{Name: []byte("Authorization"), Value: fmt.Appendf(nil, "Bearer %d", i)},
			{Name: []byte("X-Api-Key"), Value: fmt.Appendf(nil, "k%d", i)},
			{Name: []byte("X-Gitlab-Token"), Value: fmt.Appendf(nil, "t%d", i)},
			{Name: []byte("Cookie"), Value: fmt.Appendf(nil, "c%d", i)},
		}}})
	}
	for _, m := range newView(set.tables[0], set.tables[0].rows).members {
		if m.present != 4 || m.distinct != 1 {
			t.Errorf("%s: %d values", m.path, m.distinct)
		}
	}
}

// heap returns the bytes that are in use.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestWhatIsKeptStaysBelowItsLimit(t *testing.T) {
	const limit = 2 << 20
	for name, d := range map[string]func(i int) *naming.Message{
		"many deliveries of some paths": func(i int) *naming.Message {
			return &naming.Message{Path: fmt.Appendf(nil, "/p/%c", 'a'+i%20),
				Body: fmt.Appendf(nil, `{"a":%d,"b":%d,"c":"%d","d":[1,2,3],"e":{"f":%d}}`, i, i, i, i)}
		},
		"many members": func(i int) *naming.Message {
			return &naming.Message{Path: fmt.Appendf(nil, "/p/%c", 'a'+i%20),
				Body: fmt.Appendf(nil, `{"%[1]d":1,"%[1]d-%[2]s":1,"%[1]d-b":2,"%[1]d-c":3}`, i,
					strings.Repeat("x", 80))}
		},
		"many paths": func(i int) *naming.Message {
			return &naming.Message{Path: fmt.Appendf(nil, "/p/%s/%x", strings.Repeat("a", i%40+1), i/7),
				Body: []byte(`{"a":1}`)}
		},
	} {
		before := heap()
		set := NewSet(limit)
		for i := range 40_000 {
			set.Add(&Delivery{At: begin.Add(time.Duration(i) * time.Second), Message: d(i)})
		}
		if took := heap() - before; took > limit || set.bytes > limit || set.bytes < 0 {
			t.Errorf("%s: %d bytes, and %d are counted", name, took, set.bytes)
		}
		runtime.KeepAlive(set)
	}
}

func TestStrangersDoNotPushOutARoute(t *testing.T) {
	set := NewSet(0)
	post := func(route, path string, i int) {
		set.Add(&Delivery{Route: route, Path: map[bool]string{true: path}[route != ""],
			At:      begin.Add(time.Duration(i) * time.Second),
			Message: &naming.Message{Path: []byte(path), Body: []byte("{}")}})
	}
	post("shop", "/shop", 0)
	for range 5 {
		post("", "/erp", 1)
	}
	for i := range 3000 {
		post("", fmt.Sprintf("/x%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676), 2+i)
	}
	found := set.Suggest(time.Time{})
	for _, want := range []string{"/shop", "/erp"} {
		if !strings.Contains(fmt.Sprint(pathsOf(found)), want) {
			t.Errorf("%s was forgotten: %s", want, pathsOf(found))
		}
	}
	if len(found) != maxPaths || set.missed == 0 {
		t.Errorf("%d paths, %d missed", len(found), set.missed)
	}
}

func pathsOf(all []*Suggestion) (paths []string) {
	for _, s := range all {
		paths = append(paths, s.Path)
	}
	return paths
}

// The worst that strangers can fill a path with: as many members as are told apart, all of which
// look like IDs, and come again.
func TestASuggestionOfHostileDeliveriesTakesLittleTime(t *testing.T) {
	set := NewSet(8 << 20)
	for i := range 2 * MaxDeliveries {
		var b bytes.Buffer
		b.WriteByte('{')
		for j := range maxMembers - 1 {
			fmt.Fprintf(&b, `"event_id%d":"%d",`, (i%2)*maxMembers+j, i/4*j)
		}
		b.WriteString(`"created_at":"2026-03-02T08:00:00Z"}`)
		set.Add(&Delivery{At: begin.Add(time.Duration(i) * time.Second), Status: 503,
			Message: &naming.Message{Path: []byte("/h"), Body: b.Bytes()}})
	}
	began := time.Now()
	set.Suggest(time.Time{})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	} else {
		t.Log(took)
	}
}

// A delivery that ends after its retry comes before it: the retry is the repeat.
func TestDeliveriesAreInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	set := NewSet(0)
	for order := range 4 {
		for n, late := range []int{1, 0} {
			body := fmt.Appendf(nil, `{"order_id":"o%d"}`, order)
			set.Add(&Delivery{At: begin.Add(time.Duration(10*order+late) * time.Second), Status: 200, Left: n == 1,
				Message: &naming.Message{Method: []byte("POST"), Path: []byte("/in"), Body: body,
					Fields: []naming.Field{{Name: []byte("Content-Type"), Value: []byte("application/json")}}}})
		}
	}
	if found := set.Suggest(time.Time{})[0]; found.EventID != "{fingerprint}" {
		t.Errorf("%s\n%s", found.EventID, found.Sentences)
	}
}
