package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/proxy/sender"
	"hooklock/test/testkit"
)

var update = flag.Bool("update", false, "write the generated pages")

const senderDocs = "../../docs/senders"

// routeOf returns a configuration with the route to copy.
func routeOf(p *sender.Preset) string {
	var b strings.Builder
	upstream := `http://127.0.0.1:8081`
	const usual = 30 * time.Second // of upstream.timeout
	if left := p.UpstreamTimeout(); left > 0 && left < usual {
		upstream = fmt.Sprintf("{url: %q, timeout: %s}", upstream, left)
	}
	fmt.Fprintf(&b, "upstream: %s\n", upstream)
	if largest := p.Facts.Largest; largest > int64(config.Default().Limits.RequestBody) {
		fmt.Fprintf(&b, "limits: {request_body: %dMiB}\n", largest>>20)
	}
	fmt.Fprintf(&b, "routes:\n  - name: %s\n    path: %q\n    preset: %s\n    workflow: '%s'\n", p.Name, p.Page.Path,
		p.Name, p.Page.Workflow)
	if p.Page.Verify != "" {
		fmt.Fprintf(&b, "    verify: {%s}\n", p.Page.Verify)
	}
	return b.String()
}

const generated = "<!--generated-->"

// senderPage returns the page of one sender: the route to copy, its facts and its traps. README.md
// says what holds for all senders; the sources of a page are in its preset.
func senderPage(p *sender.Preset) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n```yaml\n%s```\n\n", p.Page.Title, generated, routeOf(p))
	if p.Page.Secret != "" {
		b.WriteString(p.Page.Secret + "\n\n")
	}
	fmt.Fprintf(&b, "- %s\n", strings.Join(append(factsOf(p), p.Notes...), "\n- "))
	return testkit.Wrap(b.String())
}

// selfHostedPage returns the page of the senders that users run themselves.
func selfHostedPage() string {
	var refusals, notes strings.Builder
	var routes []string
	all := selfHostedSenders()
	for _, p := range sender.Presets() {
		if p.Tried != nil {
			tried := *p.Tried
			tried.Name = fmt.Sprintf("[%s](%s.md)", tried.Name, p.Name)
			all = append(all, tried)
		}
	}
	for _, s := range all {
		tested := map[bool]string{true: "*"}[s.Run == sender.RunInTest]
		fmt.Fprintf(&refusals, "| %s | %s |\n", s.Name+tested,
			strings.Join([]string{s.Version, s.Refused, s.Unavailable, s.Redirected, s.Silent, s.EventID}, " | "))
		routes = append(routes, strings.TrimPrefix(s.Route, "\n"))
		if s.Notes != "" {
			fmt.Fprintf(&notes, "- %s: %s\n", s.Name, s.Notes)
		}
	}
	return testkit.Wrap(fmt.Sprintf(`# Self-hosted senders

%s

Servers that you run yourself, pointed at a service that refuses. *Lost*: the event never comes again. LiveKit alone obeys Retry-After, and with Gitea alone signs: let only the sender
reach the route of another. %[2]sdeploy/test/senders%[2]s runs those with *; the others were run by hand, once.

| Sender | Version | 409, 429 | 503 | A redirect | Silence | Event ID |
| --- | --- | --- | --- | --- | --- | --- |
%[3]s
A preset's page has its route.

%[2]s%[2]s%[2]syaml
upstream: {url: "http://127.0.0.1:8081", timeout: 15s}
limits: {request_body: 25MiB}        # of the preset of Gitea
park_store: {single_member: true}    # with the embedded etcd: parked events are lost with its disk
routes:
%[4]s%[2]s%[2]s%[2]s

%[5]s`, generated, "`", refusals.String(), routesOnce(routes), notes.String()))
}

// routesOnce returns the routes with one for all that differ in nothing but their name.
func routesOnce(routes []string) string {
	named := regexp.MustCompile(`^  - name: (\S+)\n`)
	first := map[string]int{} // a route without its name, and where it is
	var once []string
	for _, route := range routes {
		m := named.FindStringSubmatch(route)
		if m == nil {
			continue
		}
		nameless := strings.ReplaceAll(route, m[1], "")
		if i, seen := first[nameless]; seen {
			name, more, _ := strings.Cut(once[i], "\n")
			path, rest, _ := strings.Cut(more, "\n")
			separator := ", "
			if !strings.Contains(path, "#") {
				separator = "        # the same: "
			}
			once[i] = name + "\n" + path + separator + m[1] + "\n" + rest
			continue
		}
		first[nameless] = len(once)
		once = append(once, route)
	}
	return strings.Join(once, "")
}

var (
	// emptyTail is what Duration.String puts behind whole hours and minutes.
	emptyTail = regexp.MustCompile(`^(\d+h|(?:\d+h)?\d+m)(?:0m)?0s$`)
	pathVar   = regexp.MustCompile(`\{.*?\}`)
	table     = regexp.MustCompile(`(?s)(<!-- generated: senders -->\n).*(<!-- end: senders -->)`)
)

func shortDuration(d time.Duration) string { return emptyTail.ReplaceAllString(d.String(), "$1") }

func TestThePagesOfTheSendersAreGenerated(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(senderDocs, "README.md"))
	if err != nil || !table.Match(index) {
		t.Fatal("README.md has no place for the table of senders", err)
	}
	want := map[string]string{"README.md": table.ReplaceAllString(string(index), "${1}"+senderTable()+"${2}")}
	want["self-hosted.md"] = selfHostedPage()
	for _, p := range sender.Presets() {
		want[p.Name+".md"] = senderPage(&p)
	}
	for name, text := range want {
		path := filepath.Join(senderDocs, name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%s differs from the presets (%v); run go test ./cmd/hooklock -update", path, err)
		}
	}
}

func testEnvironment() (e *cli.Environment, out *bytes.Buffer) {
	out = new(bytes.Buffer)
	return &cli.Environment{Stdout: out, Stderr: out}, out
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestEveryRouteInTheDocsIsValid(t *testing.T) {
	files, err := filepath.Glob(senderDocs + "/*.md")
	if err != nil || len(files) < 23 {
		t.Fatalf("%d pages", len(files))
	}
	snippets := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(block[1], "components:") { // a kustomization, which deploy/test renders
				continue
			}
			snippets++
			e, _ := testEnvironment()
			loaded, err := wiring.Load(e, file, []byte(block[1]), false)
			if err != nil {
				t.Errorf("%v\n%s", err, block[1])
				continue
			}
			if _, err := wiring.NewRules(loaded.Config); err != nil {
				t.Errorf("%s: %v\n%s", file, err, block[1])
			}
			for _, w := range loaded.Warnings {
				if !strings.Contains(w.Text, "no such file") && !strings.Contains(w.Text, "is not signed") &&
					!strings.Contains(w.Text, "no delivery is guarded") { // as README begins
					t.Errorf("warning: %s\n%s", w, block[1])
				}
			}
		}
	}
	if snippets < 24 {
		t.Errorf("only %d snippets", snippets)
	}
}
