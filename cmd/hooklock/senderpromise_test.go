package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/proxy/sender"
)

// usualRetention is idempotency.retention unless a sender repeats events for longer, or names them
// for less long.
const usualRetention = 168 * time.Hour

// factsOf returns the facts of a sender for its page, one a line. A fact that the vendor does not
// publish has no line.
func factsOf(p *sender.Preset) []string {
	f := &p.Facts
	var lines []string
	line := func(given bool, format string, args ...any) {
		if given {
			lines = append(lines, fmt.Sprintf(format, args...)+".")
		}
	}
	line(true, "Event ID: %s", eventIDText(p))
	line(true, "Signed: %s", signedText(p))
	line(f.Timeout > 0, "Waits %s", shortDuration(f.Timeout))
	retries := f.RetriesOn
	if f.Retries == sender.RetriesNever {
		retries = cmp.Or(retries, "never")
	}
	line(retries != "", "Sends again: %s", retries)
	line(len(f.Success) > 0, "Success: %s", f.SuccessText())
	line(f.Largest > 0, "Sends bodies of up to %d MiB", f.Largest>>20)
	line(f.UsesAnswer != nil, "Uses the answer: %s", f.Answer)
	line(f.GivesUp != "", "Gives up: %s%s", f.GivesUp,
		map[bool]string{true: " (`hooklock_sender_limit_ratio`)"}[len(f.Limits) > 0])
	line(f.Changes != "" && f.Changes != "the signature and its time", "Changes on a retry: %s", f.Changes)
	line(p.Retention != usualRetention && !p.NoID && p.PayloadRetention == 0, "Retention: %s",
		shortDuration(p.Retention))
	line(p.Order != "", "`order: true` compares `%s`", p.Order)
	for _, signed := range []bool{true, false} {
		names := handshakes(p, signed)
		line(len(names) > 0, "Handshake, passed to the service%s: %s", map[bool]string{false: " unsigned"}[signed],
			strings.Join(names, ", "))
	}
	line(len(p.Rule.When) > 0, "Handshake, answered by Hooklock: a request with `%s`",
		strings.Join(p.Rule.When, "` and `"))
	usual, exceptions := refusals(p)
	line(len(exceptions) > 0, "Refusals are %s, except %s", usual, strings.Join(exceptions, ", "))
	return lines
}

func eventIDText(p *sender.Preset) string {
	text := p.IDText
	if p.EventID == p.IDText {
		text = "`" + p.EventID + "`"
	}
	if !p.Facts.IDSigned && !p.NoID && p.Scheme != "none" && !p.SendsToken() {
		text += " (not signed)"
	}
	return text
}

// signedText says what the signature covers, and how its age is checked and renewed.
func signedText(p *sender.Preset) string {
	if p.Scheme == "none" {
		return "[nothing](README.md#senders-that-sign-nothing)"
	}
	if p.SendsToken() {
		return "nothing; the secret is sent as it is"
	}
	c := sender.Config{Scheme: p.Scheme, Secrets: [][]byte{[]byte("whsec_AAAA")},
		PublicURL: "https://hooks.example.com"}
	covers := sender.Covers(c)
	text := "parts of the body, see below"
	if parts := coveredParts(&covers); len(parts) > 0 {
		text = strings.Join(parts, ", ")
	}
	renewal, tolerance := sender.RenewalOf(c)
	switch {
	case tolerance > 0:
		text += "; at most " + shortDuration(tolerance) + " old"
	case covers.Time:
		text += "; no age limit without `verify.tolerance`"
	}
	if renewal == sender.RenewalPossible {
		text += "; `park.signature: renew` works"
	}
	return text
}

func coveredParts(c *sender.Coverage) []string {
	var parts []string
	for _, part := range []struct {
		name    string
		covered bool
	}{{"the body", c.Body}, {"the public URL", c.URL}, {"the method", c.Method}} {
		if part.covered {
			parts = append(parts, part.name)
		}
	}
	for _, name := range c.Headers {
		parts = append(parts, "`"+name+"`")
	}
	return parts
}

func handshakes(p *sender.Preset, signed bool) []string {
	var names []string
	for _, h := range p.Handshakes {
		if h.Signed == signed {
			names = append(names, "`"+h.Name+"`")
		}
	}
	return names
}

// refusals returns "503" if the preset refuses with 503, "4xx" if it leaves the statuses as they
// are, and the decisions that are exceptions from that.
func refusals(p *sender.Preset) (usual string, exceptions []string) {
	var unlike503, unlike4xx []string
	for _, row := range idem.Decisions() {
		if row.Status < 400 || row.Status >= 500 || row.Droppable {
			continue
		}
		status := cmp.Or(p.Respond[row.Decision], row.Status)
		text := fmt.Sprintf("`%s` %d", row.Decision, status)
		if status != 503 {
			unlike503 = append(unlike503, text)
		}
		if status != row.Status {
			unlike4xx = append(unlike4xx, text)
		}
	}
	slices.Sort(unlike503)
	slices.Sort(unlike4xx)
	if len(unlike503) < len(unlike4xx) {
		return "503", unlike503
	}
	return "4xx", unlike4xx
}

// replays says when a captured delivery can run again.
func replays(p *sender.Preset) string {
	switch {
	case p.Facts.IDSigned && p.Tolerance > 0:
		return "no"
	case p.Facts.IDSigned:
		return "after " + shortDuration(p.Retention)
	case p.Tolerance > 0:
		return "for " + shortDuration(p.Tolerance)
	}
	return "yes"
}

// park says whether park is advised: where a refused event may not come again or not for long,
// where failures add up, or where the sender hardly waits.
func park(f *sender.Facts) string {
	const hasty, long = 5 * time.Second, 12 * time.Hour
	switch {
	case f.NeverParks():
		return "never"
	case f.EventIsLost(), f.RetriesFor < long, f.GivesUp != "":
		return "yes"
	case f.Timeout > 0 && f.Timeout <= hasty:
		return "if slow"
	}
	return "no"
}

const unknown = "–"

// senderTable returns the presets as a table in Markdown.
func senderTable() string {
	var b strings.Builder
	columns := []string{"Sender", "Runs again", "Lock", "Mismatch", "Refused", "Park"}
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	for _, p := range sender.Presets() {
		lock := "fail_fast"
		if p.Strategy == idem.Wait {
			lock = p.WaitTimeout.String()
		}
		mismatch := string(p.OnMismatch)
		if p.NoID {
			mismatch = unknown
		}
		refused, exceptions := refusals(&p)
		if len(exceptions) > 0 {
			refused += "*"
		}
		title := fmt.Sprintf("[%s](%s.md)", p.Page.Title, p.Name)
		if len(p.Aliases) > 0 {
			title += ", `" + strings.Join(p.Aliases, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", title, strings.Join([]string{
			replays(&p), lock, mismatch, refused, park(&p.Facts),
		}, " | "))
	}
	return b.String()
}
