package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/proxy/sender"
)

// What the pages say of a sender's promises is made of its facts alone.

// promises is the table of one page.
func promises(p *sender.Preset) string {
	var b strings.Builder
	b.WriteString("| Promise | |\n| --- | --- |\n")
	for _, row := range [][2]string{
		{"Is the event ID signed?", idSigned(p)}, {"Safe against replays?", replaySafe(p)},
		{"Is a refused event lost?", lost(p)}, {"Is `park` advised?", parkAdvised(p)},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	return b.String()
}

func idSigned(p *sender.Preset) string {
	if p.Facts.IDSigned {
		return "yes"
	}
	return "no"
}

// replaySafe: a copy under the same ID is a duplicate as long as the ID is known, and an old one is refused where a time is signed.
func replaySafe(p *sender.Preset) string {
	retention, tolerance := shortDuration(p.Retention), shortDuration(p.Tolerance)
	switch {
	case p.Facts.IDSigned && p.Tolerance > 0:
		return "yes"
	case p.Facts.IDSigned:
		return "for the retention of " + retention
	case p.Tolerance > 0:
		return "when older than " + tolerance
	}
	return "no"
}

func lost(p *sender.Preset) string {
	switch p.Facts.Retries {
	case sender.RetriesNever:
		return "yes"
	case sender.RetriesUnknown:
		return "not established"
	case sender.RetriesSome:
		return "not after the answers that Hooklock gives" + triedFor(p, ": it comes again")
	}
	return "no" + triedFor(p, ", it comes again")
}

func triedFor(p *sender.Preset, text string) string {
	if p.Facts.RetriesFor == 0 {
		return text
	}
	return text + " for " + shortDuration(p.Facts.RetriesFor)
}

// parkAdvised: where a refused event may not come again or not for long, or refusing too often costs the endpoint, or the sender hardly waits.
func parkAdvised(p *sender.Preset) string {
	const hasty, long = 5 * time.Second, 12 * time.Hour
	f := &p.Facts
	switch {
	case f.AnswerIsUsed(&sender.Delivery{}):
		return "no: only the service can give the answer"
	case f.EventIsLost(), f.RetriesFor < long:
		return "yes" + exceptAnswers(f)
	case f.GivesUp != "":
		return "yes: refusals add up" + exceptAnswers(f)
	case f.Patience > 0 && f.Patience <= hasty:
		return "for a service that needs more than " + f.Patience.String()
	}
	return "not needed"
}

func exceptAnswers(f *sender.Facts) string {
	if f.UsesAnswer == nil {
		return ""
	}
	return ", but for deliveries whose answer is used"
}

// habits says what the sender does with the answers it gets.
func habits(p *sender.Preset) string {
	f := &p.Facts
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "- "+format+".\n", args...) }
	b.WriteString(patience(p, p.Page.Title))
	switch {
	case f.RetriesOn != "" && f.Retries == sender.RetriesUnknown:
		line("After what it sends again: %s", f.RetriesOn)
	case f.RetriesOn != "":
		line("It sends again: %s", f.RetriesOn)
	case f.Retries == sender.RetriesUnknown:
		line("After which answers it sends again was not established")
	}
	line("Received is to it: %s", f.SuccessText())
	if f.Largest > 0 {
		line("Its bodies are up to %d MiB: what is longer than `limits.request_body` is 413, however often it comes", f.Largest>>20)
	}
	if f.UsesAnswer != nil {
		line("The answer is used: %s", f.Answer)
	}
	if f.GivesUp != "" {
		line("When it is refused too often: %s", f.GivesUp)
	} else {
		line("After how many failures it switches an endpoint off was not established")
	}
	if len(f.Limits) > 0 {
		line("How near it is to that is `hooklock_sender_limit_ratio`, with an alert at half")
	}
	changes := f.Changes
	if changes == "" {
		changes = "not established"
	}
	line("What differs between two attempts of one event: %s", changes)
	return b.String()
}

type named struct {
	name   string
	preset sender.Preset
}

// names are all that `preset` takes, sorted.
func names() []named {
	var all []named
	for _, p := range sender.Presets() {
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			all = append(all, named{name, p})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	return all
}

// promiseTable has a row for each name that `preset` takes.
func promiseTable() string {
	var b strings.Builder
	b.WriteString("| preset | sender | ID signed? | safe against replays? | lost when refused? | park advised? |\n|" + strings.Repeat(" --- |", 6) + "\n")
	for _, row := range names() {
		p := row.preset
		fmt.Fprintf(&b, "| `%s` | [%s](%s.md) | %s | %s | %s | %s |\n", row.name, p.Page.Title, p.Name, idSigned(&p), replaySafe(&p), lost(&p), parkAdvised(&p))
	}
	return b.String()
}
