package page

import (
	"strings"
	"testing"

	"hooklock/admin/client"
)

// What could not be read is not called nothing.
func TestWhatWasNotReadIsNotCalledNothing(t *testing.T) {
	api := &scripted{answers: map[string]any{
		"/v1/attention": &client.Attention{NotKnown: []string{"executions: etcd does not answer"}},
		"/v1/seen":      &client.SeenList{}}}
	server := newPage(t, api)
	if _, text := get(t, server, "/page/needs"); strings.Contains(text, "Nothing needs attention") ||
		!strings.Contains(text, "executions: etcd does not answer") {
		t.Errorf("%s", text)
	}
	api.set("/v1/attention", &client.Attention{LookedAt: 2})
	if _, text := get(t, server, "/page/needs"); !strings.Contains(text, "Nothing needs attention") ||
		!strings.Contains(text, "Besides what was looked at") || !strings.Contains(text, "2 looked at") {
		t.Errorf("%s", text)
	}
}

// Every item is a row, in the order of the list, with where it leads and what can be done.
func TestEachItemIsOneRowThatLeadsToWhatItIsAbout(t *testing.T) {
	list := &client.Attention{Items: []client.AttentionItem{
		{ID: "route_fails:shopify", Kind: client.AttentionRouteFails, Bad: true, Route: "shopify", Count: 60,
			Text: "shopify fails now: 60 of 60", Cause: "the service says 500", Said: "database is locked",
			Next: "it is deleted after 8 failures", Query: map[string]string{"route": "shopify", "status": "FAILED"}},
		{ID: "unknown:stripe:", Kind: client.AttentionUnknown, Bad: true, Route: "stripe", ExecutionID: anID, Count: 1,
			Text: "1 unknown outcome of stripe"},
		{ID: "dead_letters:mails:", Kind: client.AttentionDeadLetters, Route: "mails", Count: 991,
			Text: "991 dead letters of mails", Query: map[string]string{"parked": "true", "state": "dead_letter",
				"route": "mails"}},
	}}
	api := everything("x")
	api.set("/v1/attention", list)
	server := newPage(t, api)
	_, text := get(t, server, "/page/needs")
	last := 0
	for _, want := range []string{
		"#find?route=shopify&amp;status=FAILED", "shopify fails now: 60 of 60",
		"the service says 500: database is locked", "it is deleted after 8 failures",
		"#story?id=" + anID, "do=seen&amp;kind=unknown&amp;route=stripe",
		"#find?route=mails&amp;state=dead_letter", "991 dead letters of mails",
		"do=all-rerun&amp;route=mails&amp;state=dead_letter",
	} {
		at := strings.Index(text[last:], want)
		if at < 0 {
			t.Fatalf("no %q behind %q in\n%s", want, text[:last], text)
		}
		last += at
	}
	if _, text := get(t, server, "/page/now"); !strings.Contains(text,
		">the service says 500: database is locked; it is deleted after 8 failures<") {
		t.Errorf("the overview has no line with cause and consequence: %s", text)
	}
	if _, text := get(t, server, "/page/bar"); !strings.Contains(text, `data-attention="3"`) {
		t.Errorf("the count of the bar: %s", text)
	}
}

func TestTheDialogOfAPausePromisesWhatTheSenderDoes(t *testing.T) {
	api := everything("w")
	pause := func(sender *client.RouteSender) string {
		api.set("/v1/routes", &client.RouteList{Routes: []client.RouteRules{{Route: "hooks", Sender: sender,
			Answers: []client.RouteAnswer{{Decision: "paused", Text: "503 workflow_paused"}}}}})
		api.set("/v1/pauses/route:hooks", &client.Problem{Status: 404, Code: client.CodePauseNotFound})
		_, text := questionOf(t, api, "do=pause&scope=route:hooks")
		return text
	}
	if text := pause(&client.RouteSender{Preset: "github"}); !strings.Contains(text,
		"Nothing says that github sends the event again") {
		t.Errorf("%s", text)
	}
	if text := pause(&client.RouteSender{Preset: "stripe", RetriesOn: "after every answer but 2xx"}); !strings.Contains(
		text, "stripe sends again after every answer but 2xx.") {
		t.Errorf("%s", text)
	}
	if text := pause(nil); !strings.Contains(text, "Whether it sends the event again is not known here") {
		t.Errorf("%s", text)
	}
}

// What is in use is counted over all replicas, as the slots below it.
func TestTheUseOfALimitIsThatOfItsSlots(t *testing.T) {
	api := everything("w")
	api.set("/v1/status", &client.ReplicaStatus{}) // this replica uses none
	api.set("/v1/slots", &client.SlotPage{Slots: []client.Slot{{Limit: "erp", Number: 1, Of: 2},
		{Limit: "erp", Number: -1}}})
	if _, text := get(t, newPage(t, api), "/page/now"); !strings.Contains(text,
		"2 in use, 2 waiting, on all replicas") || !strings.Contains(text, "1 of 2") {
		t.Errorf("%s", text)
	}
}

func TestBadSignaturesThatNeedAttentionLeadToTheirList(t *testing.T) {
	item := client.AttentionItem{Kind: client.AttentionBadSignatures, Route: "stripe"}
	if got := placeOf(&item); got != "#signatures?route=stripe" {
		t.Errorf("it leads to %s", got)
	}
}
