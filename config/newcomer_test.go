package config

import (
	"strings"
	"testing"
)

// TestAMistakeOfANewcomerIsNamedAsWhatItIs: each line of the file that is wrong is the one that is
// named, with what to write.
func TestAMistakeOfANewcomerIsNamedAsWhatItIs(t *testing.T) {
	const head = "upstream: http://127.0.0.1:8081\nroutes:\n"
	const item = head + "  - name: a\n    path: \"/h/{account}\"\n"
	const after = "\nlimits:\n  waiting: 3\nadmin: {}\n"
	for name, c := range map[string]struct{ text, want string }{
		// Braces.
		"a template without quotes": {item + "    workflow: {path.account}",
			`5:15: routes[0].workflow: text with braces needs quotes: "{path.account}"`},
		"a path without quotes": {head + "  - name: a\n    path: {account}",
			`4:11: routes[0].match.path: text with braces needs quotes: "{account}"`},
		"a template in a list": {item + "    uses: [{path.account}]",
			`5:12: routes[0].uses[0]: text with braces needs quotes: "{path.account}"`},
		"a label without quotes": {item + "    labels: {order: {body.n}}",
			`5:21: routes[0].labels.order: text with braces needs quotes: "{body.n}"`},
		"two braces without quotes": {item + "    workflow: {{path.account}}",
			`5:15: routes[0].workflow: text with braces needs quotes, and one brace: "{path.account}"`},
		"a path in a mapping": {head + "  - {name: a, path: /h/{account}, workflow: x}",
			`3:21: not valid YAML: text with braces needs quotes: "/h/{account}"`},
		"a template with a second source": {item + "    event_id: {body.id ?? header.X}",
			`5:15: not valid YAML: text with braces needs quotes: "{body.id ?? header.X}"`},
		"a template and text": {item + "    workflow: {path.account}/x",
			`5:15: not valid YAML: text with braces needs quotes: "{path.account}/x"`},
		"a doubled brace": {item + "    workflow: \"a/{{path.account}}\"",
			`5:15: routes[0].workflow: column 3: "{{" is a plain brace, so this is text and no source: write {path.account}`},
		"a doubled brace with spaces": {item +
			"    workflow: \"{path.account}\"\n    event_id: \"{{ body.id }}\"",
			`6:15: routes[0].event_id: column 1: "{{" is a plain brace, so this is text and no source: write {body.id}`},
		"a doubled brace in a path": {head + "  - name: a\n    path: \"/h/{{account}}\"",
			`4:11: routes[0].match.path: "{{account}}": one brace is enough: write {account}`},
		"a variable of a path, as in frameworks": {head +
			"  - name: a\n    path: /h/:account\n    workflow: \"{path.account}\"",
			`4:11: routes[0].match.path: ":account": a variable is written {account}`},
		"one in angles": {head + "  - name: a\n    path: /h/<account>",
			`4:11: routes[0].match.path: "<account>": a variable is written {account}`},

		// Characters that are not what they look like.
		"typographic quotes": {head + "  - name: a\n    path: /h\n    workflow: “x”",
			`5:15: routes[0].workflow: “ (U+201C) is a typographic quotation mark, and part of the text to YAML; write " or '`},
		"single ones": {head + "  - name: a\n    path: /h\n    workflow: ‘x’",
			`5:15: routes[0].workflow: ‘ (U+2018) is a typographic quotation mark, and part of the text to YAML; write " or '`},
		"one at the end alone": {head + "  - name: a\n    path: /h\n    workflow: \"x”",
			`5:15: not valid YAML: a quotation mark or a bracket that opens here is not closed`},
		"in a list": {head + "  - name: a\n    path: /h\n    uses: [“x”]",
			`5:12: routes[0].uses[0]: “ (U+201C)`},
		"around a URL": {"upstream: “http://127.0.0.1:8081”\nroutes:\n  - {name: a, path: /a}",
			`1:11: upstream.url: “ (U+201C)`},
		"around a key": {head + "  - “name”: a\n    path: /h", `3:5: routes[0].“name”: “ (U+201C)`},
		"a no-break space before a key": {head + "  - name: a\n\u00a0   path: /h",
			"4:1: not valid YAML: U+00A0 is a no-break space, and no space to YAML; write a plain space, or remove it"},
		"a no-break space before an item": {head + "\u00a0\u00a0- name: a\n    path: /h",
			"3:1: not valid YAML: U+00A0 is a no-break space"},
		"a no-break space after a colon": {"upstream:\u00a0http://127.0.0.1:8081\nroutes:\n  - {name: a, path: /a}",
			"1:10: not valid YAML: U+00A0 is a no-break space"},
		"a no-break space after a value": {head + "  - name: a\n    path: /h\u00a0",
			"4:13: routes[0].match.path: U+00A0 is a no-break space"},
		"one in a template": {item + "    workflow: x/\u00a0{path.account}",
			"5:17: routes[0].workflow: U+00A0 is a no-break space"},
		"a tab": {head + "\t- name: a\n\t  path: /h",
			"3:1: not valid YAML: a tab begins this line; YAML is indented with spaces"},
		"a tab behind spaces": {head + "  - name: a\n    \tpath: /h",
			"4:5: not valid YAML: a tab begins this line"},
		"a line of a tab": {head + "\t\n  - name: a\n   path: /h",
			"3:1: not valid YAML: a tab begins this line"},

		"a key of the top level": {"upstream: http://127.0.0.1:8081\netcd: {data_dir: /var/lib/hooklock}",
			`2:8: etcd.data_dir: unknown key here, did you mean "data_dir" at the top level?`},
		"one in a route": {head + "  - {name: a, path: /a, etcd: {data_dir: /var/lib/hooklock}}",
			`3:25: routes[0].etcd: unknown key here, did you mean "etcd" at the top level?`},

		// Indentation.
		"one space too few": {head + "  - name: a\n    path: /h\n   workflow: x",
			"5:4: not valid YAML: this line is indented by 3 spaces; what stands beside the lines above is indented by 2 or 4"},
		"one space too many": {head + "  - name: a\n     path: /h",
			"4:6: not valid YAML: this line is indented by 5 spaces, and the line above it has its value already; what stands beside that one is indented by 4"},
		"a group that is indented": {"upstream: http://127.0.0.1:8081\n routes:\n  - name: a\n    path: /h",
			"2:2: not valid YAML: this line is indented by 1 space, and the line above"},
		"half of a group": {"upstream:\n  url: http://127.0.0.1:8081\n timeout: 3s\nroutes: []",
			"3:2: not valid YAML: this line is indented by 1 space; what stands beside the lines above is indented by 0 or 2"},
		"deep in a group": {head +
			"  - name: a\n    path: /h\n    verify:\n      scheme: none\n       header: x",
			"7:8: not valid YAML: this line is indented by 7 spaces"},
		"as the dash": {head + "  - name: a\n    path: /h\n  lock:\n      strategy: wait",
			"5:3: not valid YAML: this line is indented as the - of the list above; begin it with -, or indent it by 4 spaces"},
		"after a comment": {head + "  - name: a\n    path: /h # here\n # there\n\n   workflow: x",
			"7:4: not valid YAML: this line is indented by 3 spaces"},
		"no space after a colon": {head + "  - name: a\n    path:/h\n    workflow: x",
			"4:5: not valid YAML: a colon and a space are missing after the key"},
		"a quote that is not closed": {head + "  - name: a\n    path: \"/h\n    workflow: x",
			"4:11: not valid YAML: a quotation mark or a bracket that opens here is not closed"},
		"a bracket that is not closed": {head + "  - name: a\n    uses: [a, b\n    path: /h",
			"4:11: not valid YAML: a quotation mark or a bracket that opens here is not closed"},
		"two keys in a line": {head + "  - name: a\n    path: /h workflow: x",
			"4:5: not valid YAML: a second key and colon in one line; begin a new line, or put text that has a colon in quotes"},

		// Numbers.
		"a huge number": {item +
			"    workflow: \"{path.account}\"\n    lock: {max_waiting: 99999999999999999999}",
			"6:25: routes[0].lock.max_waiting: 99999999999999999999 is out of bounds; choose from 1 to 1000000"},
		"a huge one in exponents": {"limits: {waiting: 1e30}\nroutes: []",
			"1:19: limits.waiting: needs a whole number without quotes, e.g. 100"},
		"a huge one of a variable of the file": {"config_version: 99999999999999999999999\nroutes: []",
			"1:17: config_version: 99999999999999999999999 is not known; this release reads version 1"},
		"a huge size": {"limits: {request_body: 99999999999999999999GiB}\nroutes: []",
			"1:24: limits.request_body: 99999999999999999999GiB is out of bounds; choose from 1B to 1GiB"},
		"a huge size that is a number": {"limits: {memory: 9999999999GiB}\nroutes: []",
			"1:18: limits.memory: 9999999999GiB is out of bounds; choose from"},
		"a huge duration": {item +
			"    workflow: \"{path.account}\"\n    lock: {wait_timeout: 9999999999999h}",
			"6:26: routes[0].lock.wait_timeout: 9999999999999h is out of bounds; the longest duration is 2562047h"},
		"a huge shared limit": {"limits: {shared: {erp: 99999999999999999999}}\nroutes: [{name: a, path: /a, uses: [erp]}]", "1:19: limits.shared[\"erp\"]: 99999999999999999999 is out of bounds; choose from 1 to 10000"},
	} {
		text := c.text
		if strings.HasPrefix(c.text, head) {
			text += after
		}
		if got := refusalOf(t, Source{Bytes: []byte(text)}); !strings.HasPrefix(got, "sidecar.yaml:"+c.want) ||
			strings.Contains(got, "\n") {
			t.Errorf("%s: got\n%s\nwant\nsidecar.yaml:%s", name, got, c.want)
		}
	}
}

func TestTypographicCharactersInQuotesAndTextStay(t *testing.T) {
	loaded := load(t,
		"routes: [{name: a, path: /a, workflow: \"“x”\u00a0\", event_id: \"{body.id}\"}, {name: b, path: /b, workflow: it’s}]")
	if got := loaded.Config.Routes[0].Workflow + loaded.Config.Routes[1].Workflow; got != "“x”\u00a0it’s" {
		t.Errorf("%q", got)
	}
}
