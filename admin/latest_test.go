package admin

import (
	"testing"
	"time"

	"hooklock/idem"
)

func TestTheAPISaysWhatTheNewestHasReplacedAndWhenItRuns(t *testing.T) {
	f := newFleet(t, nil)
	f.run("w", "1")
	var ids []string
	for _, event := range []string{"2", "3"} {
		l := lockOf("w", event)
		l.Latest = &idem.Series{Quiet: time.Hour, MaxWait: time.Hour}
		if place, seen, err := f.enqueue(l, 0); err != nil || place == nil {
			t.Fatalf("%+v %v", seen, err)
		}
		ids = append(ids, string(l.Execution))
	}
	if a := f.execution(ids[0]); a.text("status") != "ABORTED" || a.text("supersededBy") != ids[1] ||
		a.text("abortedBy") != "policy" {
		t.Errorf("%s", a.body)
	}
	a := f.execution(ids[1])
	latest, _ := a.json["latest"].(map[string]any)
	if a.text("status") != "PENDING" || latest["replaced"] != 1.0 || latest["since"] == nil ||
		latest["notBefore"] == nil {
		t.Errorf("%s", a.body)
	}
}
