package page

import (
	"strings"
	"testing"

	"hooklock/admin/client"
)

// A list that was not read to its end says nothing of what is behind it.
func TestWhatWasNotReadToItsEndIsNotCalledNone(t *testing.T) {
	of := everything("x")
	of.set("/v1/executions", &client.ExecutionPage{Executions: []client.Execution{}, NextCursor: "older"})
	locks := filled[client.LockPage]("x")
	of.set("/v1/locks", locks)
	server := newPage(t, of)
	for _, screen := range []string{"needs", "find?outcome=unknown"} {
		_, text := get(t, server, "/page/"+screen)
		for _, none := range []string{"No dead letter", "Nothing needs attention", "No event matches"} {
			if strings.Contains(text, none) {
				t.Errorf("%s says %q", screen, none)
			}
		}
		if !strings.Contains(text, "No match among the newest") || !strings.Contains(text, "Search further") || !strings.Contains(text, "cursor=older") {
			t.Errorf("%s does not say what was read:\n%s", screen, text)
		}
	}
	of.set("/v1/executions", &client.ExecutionPage{Executions: []client.Execution{}})
	of.set("/v1/status", &client.ReplicaStatus{})
	of.set("/v1/routes/counts", &client.CountList{})
	if _, text := get(t, server, "/page/needs"); !strings.Contains(text, "Nothing needs attention") {
		t.Errorf("a list that was read to its end has nothing to hide:\n%s", text)
	}
}
