package idem

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestLabelsAreAnObjectInJSON(t *testing.T) {
	for _, labels := range []Labels{nil, {{"a", "1"}}, {{"a", "1"}, {"b", "\"ä<\n"}}} {
		text, err := json.Marshal(labels)
		var back Labels
		if err != nil || json.Unmarshal(text, &back) != nil || !slices.Equal(back, labels) {
			t.Errorf("%v is %s, and that is %v", labels, text, back)
		}
	}
	var unsorted Labels
	if err := json.Unmarshal([]byte(`{"b":"2","a":"1"}`), &unsorted); err != nil || unsorted[0].Name != "a" {
		t.Errorf("%v %v", unsorted, err)
	}
}

func TestALabelIsReadAsItsNameAndItsValue(t *testing.T) {
	for text, want := range map[string]Label{"order=1042": {"order", "1042"}, "1042": {"", "1042"}, "=a=b": {"", "a=b"},
		"A b=c": {"", "A b=c"}, "order=": {"order", ""}} {
		if got := ParseLabel(text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestAnArrivalKeepsTheLabelsOfItsEventOnce(t *testing.T) {
	var h, merged History
	h.Add(Arrival{Decision: DecisionLocked, Labels: Labels{{"order", "1042"}}})
	h.Add(Arrival{Decision: DecisionLocked})
	merged.Merge(&h)
	if !merged.Labels.Has(Label{Value: "1042"}) || h.Newest[0].Labels != nil || h.Newest[1].Labels != nil {
		t.Errorf("%+v", merged)
	}
}
