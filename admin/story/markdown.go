package story

import (
	"cmp"
	"fmt"
	"strings"

	"hooklock/admin/client"
)

// Markdown returns the event for a ticket: its IDs, what happened, what the service and the sender
// got, and where to look. link is the event's page; "" = none.
func (s *Story) Markdown(link string) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "**%s** %s\n\n%s\n", codeSpan(Name(s.Execution)), s.Status, literal.Replace(s.Happened()))
	if todo := s.Todo(); todo != "" {
		b.WriteString("\n" + literal.Replace(todo) + "\n")
	}
	b.WriteString("\n")
	line("Route", codeSpan(s.Route))
	line("Workflow", codeSpan(s.Workflow))
	line("Labels", codeSpan(Labels(s.Execution)))
	line("Execution", codeSpan(s.ExecutionID))
	if !s.StartedAt.IsZero() {
		line("Started", s.Stamp(s.StartedAt.Time))
	}
	if !s.FinishedAt.IsZero() {
		line("Ended", s.Stamp(s.FinishedAt.Time))
	}
	for _, a := range s.FailedAnswers {
		text := ""
		if a.Text != "" {
			text = ": " + codeSpan(strings.Join(strings.Fields(a.Text), " "))
		}
		line("The service said at "+s.Stamp(a.At.Time), fmt.Sprint(a.Status)+text)
	}
	if r := s.Response; r != nil {
		line("The service answered", fmt.Sprint(r.Status))
	}
	for i := range s.newestArrivals() {
		a := &s.newestArrivals()[i]
		line("The sender got at "+s.Stamp(a.Answered()),
			fmt.Sprintf("%d (%s)", a.Status, literal.Replace(Why(a, s.Stamp))))
	}
	line("Trace", codeSpan(s.TraceID))
	line("Page", link)
	line("Command", codeSpan(ShellLine("hooklock", "show", cmp.Or(s.ExecutionID, Name(s.Execution)))))
	return b.String()
}

func (s *Story) newestArrivals() []client.Arrival {
	if s.Arrivals == nil {
		return nil
	}
	return s.Arrivals.Newest
}

// literal escapes text so that Markdown shows it unchanged.
var literal = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "\n",
	" ")

// codeSpan formats text that Markdown shows unchanged, whatever a sender has put into it.
func codeSpan(text string) string {
	if text == "" {
		return ""
	}
	text = strings.Join(strings.Fields(text), " ")
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		text = " " + text + " "
	}
	return fence + text + fence
}
