package sender

import (
	"strings"
	"testing"
	"time"
)

func TestASenderIsRecognizedByItsHeadersAndNoOtherIs(t *testing.T) {
	known := 0
	for _, p := range Presets() {
		option := Unsigned()
		if p.key == keySecret {
			option = func(*sample) {}
		}
		s, err := Sample(p.Name, []byte("secret"), time.Unix(1767225600, 0), option)
		if err != nil {
			t.Fatal(err)
		}
		found := Recognize(20, func(header string) int {
			for _, f := range s.Fields {
				if strings.EqualFold(string(f.Name), header) {
					return 20
				}
			}
			return 0
		})
		if found == nil {
			continue
		}
		known++
		if found.Preset.Name != p.Name && found.Preset.Name != p.Scheme {
			t.Errorf("%s is taken for %s, by %s", p.Name, found.Preset.Name, found.Header)
		}
	}
	if known < 25 {
		t.Errorf("%d senders are recognized", known)
	}
	if found := Recognize(20, func(string) int { return 18 }); found != nil {
		t.Errorf("%s is recognized by a tenth less", found.Preset.Name)
	}
}
