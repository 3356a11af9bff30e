package config

import (
	"strings"
	"testing"
)

func TestAQuestionIsWrittenOnTheRoute(t *testing.T) {
	c := load(t, `
routes:
  - name: a
    path: /a/{account}
    idempotency: {on_unknown: ask}
    respond: {asked: 204}
    ask:
      url: /api/{path.account}/orders/{body.order_id}
      executed: {status: 200, body: {state: paid, data.paid: true}}
      not_executed: {status: [404, 410]}
`).Config.Routes[0]
	if c.Ask.Executed.Status[0] != (StatusRange{200, 200}) || c.Ask.Executed.Body["data.paid"] != "true" ||
		c.Ask.NotExecuted.Status[1] != (StatusRange{410, 410}) || c.Ask.Attempts != 5 {
		t.Errorf("%+v", c.Ask)
	}
}

func TestWhatCannotBeAskedIsRefused(t *testing.T) {
	const whole = "url: /x, executed: {status: 200}, not_executed: {status: 404}"
	for ask, want := range map[string]string{
		"url: ''":                          "routes[0].idempotency.on_unknown: ask: nothing says what to ask",
		"url: /x, executed: {status: 200}": "not_executed.status: is empty",
		"url: /x, executed: {status: 2xx}, not_executed: {status: 204}": "2xx is also in not_executed.status",
		whole + ", attempts: 0": "attempts: 0 is out of bounds",
		whole + ", after: 2h":   "after: 2h is out of bounds",
		"url: 'ftp://x/', executed: {status: 200}, not_executed: {status: 404}":                "neither a path of the upstream",
		"url: 'http://{body.host}/', executed: {status: 200}, not_executed: {status: 404}":     "nor a URL",
		"url: 'http://api.{body.host}/', executed: {status: 200}, not_executed: {status: 404}": "write the whole host",
		"url: 'http://u:p@api/', executed: {status: 200}, not_executed: {status: 404}":         "a password does not stand in a URL",
		"url: '/x/{path.y}', executed: {status: 200}, not_executed: {status: 404}":             "path.y",
		"url: /x, executed: {status: 200, body: [a]}, not_executed: {status: 404}":             "needs a mapping of members",
	} {
		text := "routes: [{name: a, path: /a, idempotency: {on_unknown: ask}, ask: {" + ask + "}}]"
		if got := refusalOf(t, Source{Bytes: []byte(text)}); !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %s", ask, want, got)
		}
	}
}
