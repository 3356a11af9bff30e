package naming

import (
	"fmt"
	"strings"
	"testing"
)

// TestLongJSONInAFormSaysItsOwnLimit, which is not that of a value.
func TestLongJSONInAFormSaysItsOwnLimit(t *testing.T) {
	typed := []Field{{[]byte("Content-Type"), []byte("application/x-www-form-urlencoded")}}
	for source, c := range map[string]struct {
		body string
		most int
	}{
		"form.payload.id": {"payload=%7B%22id%22:1%7D" + strings.Repeat("+", maxFormJSON), maxFormJSON},
		"form.id":         {"id=" + strings.Repeat("x", MaxValue+1), MaxValue},
	} {
		keys := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{" + source + "}", Missing: MissingReject})
		m := &Message{Fields: typed, Body: []byte(c.body)}
		says := fmt.Sprintf("longer than %d bytes", c.most)
		if _, err := keys.Name(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", source, err)
		}
		for _, u := range keys.Unread(m) {
			if !strings.Contains(u.Why, says) {
				t.Errorf("%s: explained as %q", source, u.Why)
			}
		}
	}
}
