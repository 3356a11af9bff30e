package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

func TestWhatWasLookedAtIsListedWithWhereItIs(t *testing.T) {
	api := &scripted{answers: map[string]any{
		"/v1/attention": &client.Attention{LookedAt: 2},
		"/v1/seen": &client.SeenList{Seen: []client.SeenMark{{Concern: "unknown:forged", Reason: "TICKET-9"},
			{Concern: "silent:quiet"}}},
	}}
	_, text := get(t, newPage(t, api), "/page/needs")
	for _, want := range []string{"TICKET-9", "#find?outcome=unknown&amp;route=forged&amp;status=FAILED",
		"silent of quiet", "do=unseen&amp;concern=silent%3Aquiet"} {
		if !strings.Contains(text, want) && !strings.Contains(text,
			strings.ReplaceAll(want, "do=unseen&amp;concern=silent%3Aquiet", "concern=silent%3Aquiet&amp;do=unseen")) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "Show again") != 2 {
		t.Errorf("%s", text)
	}
}

// The question names what is marked, by route and up to when, so that what comes meanwhile is not
// hidden.
func TestTheMarkEndsWithTheNewestThatWasShown(t *testing.T) {
	now := time.Now()
	item := func(route, cause string, n string, ago time.Duration) client.AttentionItem {
		return client.AttentionItem{Kind: client.AttentionDeadLetters, Route: route, Cause: cause, Text: n,
			LatestAt: client.Time{Time: now.Add(-ago)}}
	}
	stamped := func(ago time.Duration) string { return now.Add(-ago).UTC().Format("2006-01-02T15:04:05.000Z") }
	api := &scripted{answers: map[string]any{"/v1/attention": &client.Attention{Items: []client.AttentionItem{
		item("stripe", "500", "7 dead letters of stripe", time.Hour), item("github", "500", "1 dead letter of github",
			2*time.Hour), item("stripe", "503", "2 dead letters of stripe", time.Minute),
	}}}}
	server := newPage(t, api)
	_, text := get(t, server, "/page/ask?do=seen&kind=dead_letters")
	for _, want := range []string{
		"7 dead letters of stripe, 2 dead letters of stripe, up to", "1 dead letter of github, up to",
		"dead_letters:stripe", stamped(time.Minute), stamped(2 * time.Hour),
		"hooklock seen dead_letters:github --until " + stamped(2*time.Hour),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, stamped(time.Hour)) {
		t.Errorf("the older of two is named:\n%s", text)
	}
	if _, text := get(t, server, "/page/ask?do=seen&kind=dead_letters&route=github"); strings.Contains(text, "stripe") {
		t.Errorf("the question about one route names another:\n%s", text)
	}
	if _, text := get(t, server, "/page/ask?do=seen&kind=lost"); !strings.Contains(text, "None is left.") {
		t.Errorf("%s", text)
	}
	if res, _ := get(t, server, "/page/ask?do=seen&kind=nothing"); res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown kind: %d", res.StatusCode)
	}
}
