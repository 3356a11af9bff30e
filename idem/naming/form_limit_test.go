package naming

import (
	"fmt"
	"strings"
	"testing"
)

// TestLongJSONInAnotherTextSaysItsOwnLimit, which is not that of a value.
func TestLongJSONInAnotherTextSaysItsOwnLimit(t *testing.T) {
	form, inJSON := "application/x-www-form-urlencoded", "application/json"
	for source, c := range map[string]struct {
		typed, body string
		most        int
	}{
		"body.message.id": {inJSON, `{"message": "{\"id\": 1}` + strings.Repeat(" ", maxInner) + `"}`, maxInner},
		"body.note.id":    {inJSON, `{"note": "` + strings.Repeat("x", maxInner+1) + `"}`, 0},
		"form.payload.id": {form, "payload=%7B%22id%22:1%7D" + strings.Repeat("+", maxFormJSON), maxFormJSON},
		"form.id":         {form, "id=" + strings.Repeat("x", MaxValue+1), MaxValue},
	} {
		keys := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{" + source + "}", Missing: MissingReject})
		m := &Message{Fields: []Field{{[]byte("Content-Type"), []byte(c.typed)}}, Body: []byte(c.body)}
		says := fmt.Sprintf("longer than %d bytes", c.most)
		if c.most == 0 { // no JSON is in it
			says = "absent"
		}
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
