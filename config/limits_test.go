package config

import (
	"slices"
	"strings"
	"testing"
)

// TestALimitThatCannotBeIsRefused: each with what to do.
func TestALimitThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an unknown name", "routes: [{name: a, path: /a, uses: [erp]}]",
			`routes[0].uses[0]: "erp" is not in limits.shared`},
		{"a number of nothing", "limits: {shared: {erp: 0}}\nroutes: [{name: a, path: /a, uses: [erp]}]",
			`limits.shared["erp"]: 0 is out of bounds; choose from 1 to`},
		{"no number", "limits: {shared: {erp: many}}\nroutes: [{name: a, path: /a, uses: [erp]}]",
			"sidecar.yaml:1:24: limits.shared[\"erp\"]: needs a whole number"},
		{"no mapping", "limits: {shared: [erp]}", "limits.shared: needs a mapping of names"},
		{"a bare source",
			"limits: {shared: {\"{path.x}\": 2}}\nroutes: [{name: a, path: \"/{x}\", uses: [\"{path.x}\"]}]",
			"begins with a word and a slash"},
		{"another limit's name",
			"limits: {shared: {\"workflow:a\": 2}}\nroutes: [{name: a, path: /a, uses: [\"workflow:a\"]}]",
			"a name is made of a-z, 0-9, - and /"},
		{"a variable that the path has not",
			"limits: {shared: {\"t/{path.y}\": 2}}\nroutes: [{name: a, path: \"/{x}\", uses: [\"t/{path.y}\"]}]",
			"captures no {y}"},
		{"twice", "limits: {shared: {erp: 2}}\nroutes: [{name: a, path: /a, uses: [erp, erp]}]", "erp is given twice"},
		{"lock.limit of nothing", "routes: [{name: a, path: /a, lock: {limit: 0}}]",
			"routes[0].lock.limit: 0 is out of bounds"},
		{"lock.limit without a lock", "routes: [{name: a, path: /a, lock: {limit: 2, strategy: none}}]",
			"lock.strategy none bounds nothing"},
	} {
		_, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte(c.text)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q in\n%v", c.name, c.want, err)
		}
	}
}

const limitedRoute = "limits: {shared: {erp: 20, \"tenant/{path.a}\": 5}}\nroutes: [{name: r, path: \"/{a}\", uses: [erp, \"tenant/{path.a}\"], lock: {limit: 3}}]"

func TestLimitsAreReadAndWarnedAbout(t *testing.T) {
	l := load(t, limitedRoute)
	if s := l.Config.Limits.Shared; s["erp"] != 20 || s["tenant/{path.a}"] != 5 {
		t.Errorf("%v", s)
	}
	if !slices.ContainsFunc(l.Warnings, func(p Problem) bool {
		return p.Path == "routes[0].lock.limit" && strings.Contains(p.Text, "no fencing token")
	}) {
		t.Errorf("nobody says what lock.limit means: %v", l.Warnings)
	}
	idle := load(t, "limits: {shared: {erp: 20}}\nroutes: [{name: r, path: /a}]")
	if !slices.ContainsFunc(idle.Warnings, func(p Problem) bool { return p.Path == `limits.shared["erp"]` }) {
		t.Errorf("nobody says that no route uses it: %v", idle.Warnings)
	}
}

// TestWhatALimitDoesNotDoIsWarnedAbout: neither stop a workflow whose events overlap, nor count
// what has no event ID.
func TestWhatALimitDoesNotDoIsWarnedAbout(t *testing.T) {
	const shared = "park_store: {single_member: true}\nlimits: {shared: {erp: 2}}\n"
	for route, want := range map[string]string{

		"lock: {limit: 2}, park: true": "waits for a person, and the others of its workflow run",

		"uses: [erp], on_missing_event_id: pass, event_id: '{header.x}'": "counts against none of these limits",
		"lock: {limit: 2}, park: {enabled: true, on_failure: skip}":      "",
		"uses: [erp]": "",
	} {
		l := load(t, shared+"routes: [{name: a, path: /a, "+route+"}]")
		got := l.Warnings.Error()
		if want != "" && !strings.Contains(got, want) ||
			want == "" && (strings.Contains(got, "others of its") || strings.Contains(got, "none of these")) {
			t.Errorf("%s: %s", route, got)
		}
	}
}

func TestAChangedLimitNeedsNoRestart(t *testing.T) {
	before := load(t, limitedRoute).Config
	after := load(t, strings.NewReplacer("20", "30", "limit: 3", "limit: 4").Replace(limitedRoute)).Config
	if restart, reload := Changes(before, after); len(restart) > 0 || !slices.Contains(reload, "limits.shared") ||
		!slices.Contains(reload, "route r: lock.limit") {
		t.Errorf("restart %v, reload %v", restart, reload)
	}
	one := load(t, strings.Replace(limitedRoute, "limit: 3", "limit: 1", 1)).Config
	for _, to := range [][2]*Config{{before, one}, {one, before}} {
		if restart, reload := Changes(to[0], to[1]); len(restart) > 0 ||
			!slices.Contains(reload, "route r: lock.limit") {
			t.Errorf("restart %v, reload %v", restart, reload)
		}
	}
}

// A quarter of the memory is for small bodies, so three quarters have room for a whole one.
func TestTheLeastMemoryHasRoomForTheGreatestBody(t *testing.T) {
	for body := Size(1); body < 20; body++ {
		least := (&Limits{RequestBody: body}).LeastMemory()
		if 3*least < 4*body || 3*(least-1) >= 4*body {
			t.Errorf("a body of %d: %d bytes of memory", body, least)
		}
	}
}
