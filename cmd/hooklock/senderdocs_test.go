package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
	"hooklock/test/testkit"
)

var update = flag.Bool("update", false, "write the generated pages anew")

const senderDocs = "../../docs/senders"

// statuses of the decisions that refuse, without a preset.
func statuses() map[idem.Decision]int {
	all := map[idem.Decision]int{}
	for _, row := range idem.Decisions() {
		if row.Status >= 400 && !row.Droppable {
			all[row.Decision] = row.Status
		}
	}
	return all
}

// routeOf is the route to copy.
func routeOf(p *sender.Preset) string {
	var b strings.Builder
	b.WriteString("upstream:\n  url: http://127.0.0.1:8081\n")
	const usual = 30 * time.Second // of upstream.timeout
	if left := p.UpstreamTimeout(); left > 0 && left < usual {
		fmt.Fprintf(&b, "  timeout: %s\n", left)
	}
	if largest := p.Facts.Largest; largest > int64(config.Default().Limits.RequestBody) {
		fmt.Fprintf(&b, "limits: {request_body: %dMiB}\n", largest>>20)
	}
	fmt.Fprintf(&b, "routes:\n  - name: %s\n    path: %q\n    preset: %s\n    workflow: '%s'\n", p.Name, p.Page.Path, p.Name, p.Page.Workflow)
	if p.Page.Verify != "" {
		fmt.Fprintf(&b, "    verify: {%s}\n", p.Page.Verify)
	}
	return b.String()
}

func senderPageText(p *sender.Preset) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n<!-- Generated from proxy/sender: go test ./cmd/hooklock -update -->\n\n", p.Page.Title)
	fmt.Fprintf(&b, "```yaml\n%s```\n\n", routeOf(p))
	if p.Page.Secret != "" {
		b.WriteString(p.Page.Secret + "\n\n")
	}
	fmt.Fprintf(&b, "To try it: `%s`\n\n", tryOut(p))
	b.WriteString("## What the preset sets\n\nEvery setting of the route overrides it.\n\n| Setting | Value |\n| --- | --- |\n")
	values := settingsOf(p)
	for _, name := range sortedNames(values) {
		if !strings.HasPrefix(name, "respond.") {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", name, values[name])
		}
	}
	if len(p.Respond) > 0 {
		fmt.Fprintf(&b, "| `respond` | %s |\n", respondText(values))
	}
	b.WriteString("\n## What Hooklock relies on\n\n")
	fmt.Fprintf(&b, "- Event ID: %s.\n", idText(p))
	b.WriteString(coverage(p))
	b.WriteString(habits(p))
	b.WriteString(ageing(p))
	for _, h := range p.Handshakes {
		how := "as `bypassed`; it is not signed"
		switch {
		case h.Signed:
			how = "as `bypassed`, after its signature was checked"
		case h.Name == "OPTIONS":
			how = "untouched, as every method does that is harmless and not the route's"
		}
		fmt.Fprintf(&b, "- Handshake `%s` passes through to the service %s.\n", h.Name, how)
	}
	if len(p.Rule.When) > 0 {
		fmt.Fprintf(&b, "- A request with `%s` is the sender's handshake: it is answered here, and does not reach the service.\n", strings.Join(p.Rule.When, "` and `"))
	}
	b.WriteString("\nSources: ")
	b.WriteString(strings.Join(p.Sources, "; ") + ".\n\n## What it promises, and what it cannot\n\n")
	b.WriteString(promises(p) + "\n")
	for _, n := range p.Notes {
		b.WriteString("- " + n + "\n")
	}
	late := "- Events run in the order in which they come and get the lock, which need not be the order in which they happened."
	if p.Order != "" {
		late += " With `order: true`, one that is older than what went through is known by `" + p.Order + "` ([order](../order.md))."
	}
	b.WriteString(late + "\n")
	return testkit.Wrap(b.String())
}

// settingsOf is what preset and scheme fill in together.
func settingsOf(p *sender.Preset) map[string]string {
	settings := map[string]string{}
	for _, w := range sender.SchemeWords() {
		if w.Name == p.Scheme {
			maps.Copy(settings, w.Settings)
		}
	}
	for _, w := range sender.PresetWords() {
		if w.Name == p.Name {
			maps.Copy(settings, w.Settings)
		}
	}
	return settings
}

// emptyTail is what Duration.String puts behind whole hours and minutes.
var emptyTail = regexp.MustCompile(`^(\d+h|(?:\d+h)?\d+m)(?:0m)?0s$`)

func shortDuration(d time.Duration) string { return emptyTail.ReplaceAllString(d.String(), "$1") }

var pathVar = regexp.MustCompile(`\{.*?\}`)

func tryOut(p *sender.Preset) string {
	line := "hooklock sample " + p.Name + " --url http://127.0.0.1:8080" + pathVar.ReplaceAllString(p.Page.Path, "a")
	switch {
	case strings.HasPrefix(p.Page.Verify, "secret_file: "):
		file, _, _ := strings.Cut(strings.TrimPrefix(p.Page.Verify, "secret_file: "), ",")
		line += " --secret-file " + file
	case p.Page.Verify != "":
		line += " --secret-file test-private-key.pem"
	}
	if strings.Contains(p.Page.Verify, "public_url") {
		line += " --public-url https://hooks.example.com"
	}
	if strings.Contains(p.Page.Verify, "webhook_id") {
		line += " --webhook-id 5GP028458E2496506"
	}
	return line
}

func sortedNames(values map[string]string) []string {
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func respondText(values map[string]string) string {
	var parts []string
	for _, name := range sortedNames(values) {
		if decision, ok := strings.CutPrefix(name, "respond."); ok {
			parts = append(parts, decision+" "+values[name])
		}
	}
	return strings.Join(parts, ", ")
}

func idText(p *sender.Preset) string {
	if p.EventID != "" {
		return "`" + p.EventID + "`"
	}
	return p.IDText
}

// patience says how long the sender waits and goes on trying.
func patience(p *sender.Preset, title string) string {
	text := "- How long " + title + " waits for an answer was not established"
	if p.Facts.Patience > 0 {
		text = fmt.Sprintf("- %s waits %s for an answer", title, p.Facts.Patience)
		if p.Strategy == "wait" {
			text += fmt.Sprintf("; a delivery waits at most %s of that for its turn, so that %s are left for the service", p.WaitTimeout, p.UpstreamTimeout())
		}
	}
	switch {
	case p.Facts.Retries == sender.RetriesNever:
		text += ". It does not send again what was refused"
	case p.Facts.RetriesFor > 0:
		text += fmt.Sprintf(". It goes on trying for %s", shortDuration(p.Facts.RetriesFor))
	}
	if p.RetryAfterUnit == time.Millisecond {
		text += ". Retry-After is in milliseconds here"
	}
	return text + ".\n"
}

// coverage says what the signature covers.
func coverage(p *sender.Preset) string {
	if p.Scheme == "none" {
		return "- Nothing is signed. A secret in a header can be checked with `verify: {scheme: token, …}`, see [other.md](other.md).\n"
	}
	if p.SendsToken() {
		return "- Nothing is signed: the secret comes as it is, and proves nothing about the rest.\n"
	}
	c := sender.Covers(sender.Config{Scheme: p.Scheme, Secrets: [][]byte{[]byte("whsec_x")}})
	var parts []string
	if c.Body {
		parts = append(parts, "the body")
	}
	if c.URL {
		parts = append(parts, "the public URL")
	}
	if c.Method {
		parts = append(parts, "the method")
	}
	if len(c.Headers) > 0 {
		parts = append(parts, strings.Join(c.Headers, ", "))
	}
	if len(parts) == 0 {
		parts = []string{"parts of the body, see below"}
	}
	text := "- The signature covers " + strings.Join(parts, ", ")
	if name := c.Uncovered(cmp.Or(p.EventID, naming.EventIDOfPreset), p); name != "" {
		text += "; the event ID (" + name + ") is not signed, so finding duplicates is no protection against replays"
	}
	return text + ".\n"
}

// ageing says what becomes of the signature of an event that is parked.
func ageing(p *sender.Preset) string {
	if p.Scheme == "none" {
		return ""
	}
	c := sender.Config{Scheme: p.Scheme, Secrets: [][]byte{[]byte("whsec_AAAA")}, PublicURL: "https://hooks.example.com"}
	renewal, tolerance := sender.RenewalOf(c)
	text := "- How old a signature may be is not documented. A parked event may be refused by a service that asks for its age"
	if tolerance > 0 {
		text = "- A service that asks for the age of a signature refuses a parked event " + shortDuration(tolerance) + " after it was signed"
	}
	switch {
	case renewal == sender.RenewalNeedless:
		return "- No time is signed: a parked event is as good as a fresh one however long it waits, and `park.signature` changes nothing.\n"
	case renewal == sender.RenewalPossible:
		return text + ". With `park.signature: renew` it gets a signature of the moment, under the route's secret. Of the head, nothing but the value of " +
			strings.Join(renewedNames(p, &c), " and ") + " changes; `" + sender.RenewedHeader + "` says when " + p.Page.Title + " signed it.\n"
	case strings.Contains(p.Page.Verify, "public_key_file"):
		return text + ", and `park.signature: renew` is not possible: only " + p.Page.Title + " has the key that signs.\n"
	}
	return text + ", and `park.signature: renew` is not possible: the time is in the body.\n"
}

// renewedNames are the headers that a renewal changes.
func renewedNames(p *sender.Preset, c *sender.Config) []string {
	at := time.Unix(1767225600, 0)
	sample, err := sender.Sample(p.Name, c.Secrets[0], at)
	if err != nil {
		panic(err)
	}
	renewer, err := sender.NewRenewer(*c)
	if err != nil {
		panic(err)
	}
	renewed, err := renewer.Renew(&sender.Delivery{Method: []byte(sample.Method), Target: []byte(sample.Target), Fields: sample.Fields, Body: sample.Body}, at)
	if err != nil {
		panic(err)
	}
	var names []string
	for _, change := range renewed.Changes {
		names = append(names, "`"+string(sample.Fields[change.At].Name)+"`")
	}
	return names
}

func senderIndexText() string {
	var b strings.Builder
	b.WriteString(`# Senders

<!-- Generated from proxy/sender: go test ./cmd/hooklock -update -->

` + "`preset: NAME`" + ` on a route says what is known of a sender: where its event ID is, what it signs, how long it waits, and which answers make it send again. Every setting
of the route overrides it, ` + "`hooklock config show --origin`" + ` says where each value came from, and ` + "`hooklock explain`" + ` what becomes of one delivery. A preset without a secret is refused:
give one, or say ` + "`verify: {scheme: none}`" + `.

A signature is checked on the raw body, before anything else is done with a delivery: a forged one takes no lock and burns no event ID. While a secret is rolled, give both as
` + "`secret_files: [new, old]`" + `. A changed secret file is read on SIGHUP. Keys are never fetched from an address that a delivery names.

What a signature does not cover can be changed by whoever captured a delivery: for nearly all senders that is the path, the query, the host and the headers; each page says what is covered. So two accounts
that share a secret and differ in the path alone are not kept apart by it: give each its own secret. And where the body is the key, because there is no ID, another query makes it a new event.

`)
	b.WriteString("A sender that is not here needs no preset: [another sender](other.md) says what to write for `hmac`, `token` and templates, and [adding one](adding.md) is one file.\n\n")
	b.WriteString("## What can be promised\n\nBy the names that `preset` takes. *ID signed*: whoever captured a delivery cannot send it under another ID. *Safe against replays*: such a copy is refused or found to be a duplicate. ")
	b.WriteString("*Lost when refused*: what becomes of an event that gets 409 or 503. *Park advised*: whether Hooklock had better take the event and run it later.\n\n")
	b.WriteString(promiseTable())
	b.WriteString("\n## What they are set to\n\n")
	b.WriteString("The columns behind the retention are the status of each decision that Hooklock answers itself. For every sender it is one after which that sender sends again, or loses nothing; ")
	b.WriteString("where a sender never sends again, a delivery waits its turn instead. 410 is never sent: some senders then give up for good.\n\n")
	b.WriteString(senderTable(statuses()))
	return testkit.Wrap(b.String())
}

// senderTable is the presets as a table in Markdown. defaults holds the status of every refusing decision
// where no preset says otherwise.
func senderTable(defaults map[idem.Decision]int) string {
	decisions := slices.Sorted(maps.Keys(defaults))
	var out strings.Builder
	out.WriteString("| preset | event ID | signature (tolerance) | on_mismatch | strategy (wait) | sender waits, left for the upstream | retention |")
	for _, d := range decisions {
		fmt.Fprintf(&out, " %s |", d)
	}
	out.WriteString("\n|" + strings.Repeat(" --- |", 7+len(decisions)) + "\n")
	for _, p := range sender.Presets() {
		id := p.IDText
		if p.EventID != "" {
			id = "`" + id + "`"
		}
		strategy := string(p.Strategy)
		if p.Strategy == idem.Wait {
			strategy += " (" + p.WaitTimeout.String() + ")"
		}
		fmt.Fprintf(&out, "| %s | %s | %s (%s) | %s | %s | %s, %s | %dh |", p.Name, id, p.Scheme, orNone(p.Tolerance), p.OnMismatch, strategy,
			orNone(p.Facts.Patience), orNone(p.UpstreamTimeout()), int(p.Retention.Hours()))
		for _, d := range decisions {
			fmt.Fprintf(&out, " %d |", cmp.Or(p.Respond[d], defaults[d]))
		}
		out.WriteString("\n")
	}
	return out.String()
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return d.String()
}

func TestThePagesOfTheSendersAreGenerated(t *testing.T) {
	want := map[string]string{"README.md": senderIndexText()}
	for _, p := range sender.Presets() {
		want[p.Name+".md"] = senderPageText(&p)
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
			t.Errorf("%s is not what the presets say (%v); run go test ./cmd/hooklock -update", path, err)
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
				if !strings.Contains(w.Text, "no such file") && !strings.Contains(w.Text, "is not signed") {
					t.Errorf("warning: %s\n%s", w, block[1])
				}
			}
		}
	}
	if snippets < 24 {
		t.Errorf("only %d snippets", snippets)
	}
}
