package sender

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
)

// Status is the status of a decision under p: its own, else the one in defaults.
func (p *Preset) Status(d idem.Decision, defaults map[idem.Decision]int) int {
	if status, ok := p.Respond[d]; ok {
		return status
	}
	return defaults[d]
}

// Table is the presets as a table in Markdown, for the documentation. defaults holds the status of every refusing decision
// where no preset says otherwise.
func Table(defaults map[idem.Decision]int) string {
	decisions := slices.Sorted(maps.Keys(defaults))
	var out strings.Builder
	out.WriteString("| preset | event ID | signature (tolerance) | on_mismatch | strategy (wait) | sender waits, left for the upstream | retention |")
	for _, d := range decisions {
		fmt.Fprintf(&out, " %s |", d)
	}
	out.WriteString("\n|" + strings.Repeat(" --- |", 7+len(decisions)) + "\n")
	for _, p := range Presets() {
		id := p.IDText
		if p.EventID != "" {
			id = "`" + id + "`"
		}
		strategy := string(p.Strategy)
		if p.Strategy == idem.Wait {
			strategy += " (" + p.WaitTimeout.String() + ")"
		}
		fmt.Fprintf(&out, "| %s | %s | %s (%s) | %s | %s | %s, %s | %dh |", p.Name, id, p.Scheme, orNone(p.Tolerance), p.OnMismatch, strategy,
			orNone(p.SenderTimeout), orNone(p.UpstreamTimeout()), int(p.Retention.Hours()))
		for _, d := range decisions {
			fmt.Fprintf(&out, " %d |", p.Status(d, defaults))
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
