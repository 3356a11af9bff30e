package sender

import (
	"testing"
	"time"

	"hooklock/idem/naming"
)

func TestTheLabelsOfAPresetAreInItsSample(t *testing.T) {
	labelled := 0
	for _, p := range Presets() {
		for name, template := range p.Labels {
			labelled++
			keys, err := naming.NewKeys(naming.KeySpec{Route: "r", Workflow: "w",
				Labels: []naming.LabelSpec{{Name: name, Template: template}}})
			if err != nil {
				t.Fatal(err)
			}
			_, secret := credentials(t, p.Name)
			s, err := Sample(p.Name, secret, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			n, err := keys.Name(&naming.Message{Method: []byte(s.Method), Target: []byte(s.Target), Fields: s.Fields,
				Body: s.Body})
			if err != nil || len(n.Labels) != 1 {
				t.Errorf("%s: %v, %s is not in %s", p.Name, err, template, s.Body)
			}
		}
	}
	if labelled < 12 {
		t.Errorf("%d presets have labels", labelled)
	}
}
