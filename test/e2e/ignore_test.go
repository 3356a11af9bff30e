package e2e

import (
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// A sender that writes the time of sending into the body makes each attempt other bytes. Named in
// ignore, they say nothing about the event.
func TestAnAttemptThatDiffersInIgnoredMembersIsTheSameEvent(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("ran") })
	h := own(t, bare(up.URL, `
routes:
  - {name: ids, path: /ids, event_id: "{body.id}", ignore: [body.sent_at, "body.tries[*].at"]}
  - {name: payload, path: /payload, ignore: [body.sent_at]}
  - {name: form, path: /form, event_id: "{form.id}", ignore: [form.t]}
  - {name: xml, path: /xml, event_id: "{xml.a.id}", ignore: [xml.a.t]}
  - {name: all, path: /all, event_id: "{body.id}", on_missing_event_id: reject, ignore: ["*"]}
`))
	for path, c := range map[string]struct{ media, first, again, other string }{
		"/ids": {"application/json", `{"id":"1","sent_at":1,"n":5}`, `{"id":"1","sent_at":2,"n":5}`,
			`{"id":"1","sent_at":1,"n":6}`},
		"/payload": {"application/json", `{"sent_at":1,"n":5}`, `{"n":5}`, ""},
		"/form":    {"application/x-www-form-urlencoded", "id=1&t=1", "id=1&t=2", "id=1&t=1&n=2"},
		"/xml": {"text/xml", "<a><id>1</id><t>1</t></a>", "<a><id>1</id><t>2</t></a>",
			"<a><id>1</id><t>1</t><n/></a>"},
		"/all": {"application/json", `{"id":"1","n":5}`, `{"id":"1","n":6}`, ""},
	} {
		first := testkit.Post(t, h.Addr, path, c.first, "Content-Type: "+c.media)
		if first.Status != 200 || first.Header.Get("Hooklock-Decision") != "executed" {
			t.Fatalf("%s: %v", path, first)
		}
		if got := up.Received(path); len(got) != 1 || got[0].Body != c.first {
			t.Errorf("%s: forwarded as %+v", path, got)
		}
		if a := testkit.Post(t, h.Addr, path, c.again, "Content-Type: "+c.media); a.Status != 200 ||
			a.Header.Get("Hooklock-Decision") != "replayed" {
			t.Errorf("%s: another attempt is %v", path, a)
		}
		if c.other == "" {
			continue
		}
		a := testkit.Post(t, h.Addr, path, c.other, "Content-Type: "+c.media)
		if a.Status != 422 || !strings.Contains(string(a.Body), "body") {
			t.Errorf("%s: other content is %v", path, a)
		}
	}
}
