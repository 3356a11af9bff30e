package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// routesScreen shows one line for each route, the problems of routes, and their rules, folded.
func routesScreen(v *visit) ([]section, error) {
	_, status, err := v.processSection()
	if err != nil {
		return nil, err
	}
	rates, err := v.countsSection(status, "routes")
	if err != nil {
		return nil, err
	}
	since := cmp.Or(v.query.Get("since"), "24h")
	found := section{
		ID: "report", Title: "Problems by route",
		Note: "Seen by this replica. In mode observe such deliveries are forwarded, otherwise refused.",
		Search: &search{"routes", []input{{Name: "since", Label: "Since", Value: since, Hint: "24h, or a time",
			Main: true}}},
	}
	report, err := readObject[client.Report](v, "/v1/report", "since", since)
	switch {
	case isLimited(err):
		return []section{{ID: "rates", Title: "Routes", Note: notAll}}, nil
	case isProblem(err, client.CodeBadRequest):
		found.Trouble, report = problemOf(err).Detail, &client.Report{}
	case err != nil:
		return nil, err
	default:
		found.Empty = "No delivery came."
		came := slices.DeleteFunc(slices.Clone(report.Routes), func(r client.RouteReport) bool {
			return r.Deliveries == 0
		})
		if found.Count = len(came); found.Count > 0 {
			found.Table = tableOf("Problems by route", reportColumns(), came, func(r *client.RouteReport) string {
				return r.Route
			})
		}
	}
	all := []section{rates, found}
	if examples := examplesOf(report); examples.Table != nil {
		all = append(all, examples)
	}
	list, err := readObject[client.RouteList](v, "/v1/routes")
	if err != nil {
		return nil, err
	}
	for i := range list.Routes {
		all = append(all, rulesOf(&list.Routes[i]))
	}
	return all, nil
}

// reportColumns show the problems of a route.
func reportColumns() []column[client.RouteReport] {
	finding := func(of func(*client.RouteReport) *client.Finding) func(*client.RouteReport) cell {
		return func(r *client.RouteReport) cell { return numberCell(of(r).Count) }
	}
	return []column[client.RouteReport]{
		{"Route", func(r *client.RouteReport) cell { return textCell(r.Route) }},
		{"Mode", func(r *client.RouteReport) cell { return modeCell(r.Mode) }},
		{"Deliveries", func(r *client.RouteReport) cell { return numberCell(r.Deliveries) }},
		{"Stale", finding(func(r *client.RouteReport) *client.Finding { return &r.Stale })},
		{"Duplicates", finding(func(r *client.RouteReport) *client.Finding { return &r.Duplicates })},
		{"Of them changed", func(r *client.RouteReport) cell {
			return cell{Text: numberCell(r.Changed.Count).Text, Class: "warn", Title: r.ChangedText()}
		}},
		{"Twins", func(r *client.RouteReport) cell {
			return cell{Text: numberCell(r.Twins.Count).Text, Title: r.TwinsText()}
		}},
		{"Busy", finding(func(r *client.RouteReport) *client.Finding { return &r.Overlaps })},
		{"Mismatches", finding(func(r *client.RouteReport) *client.Finding { return &r.Mismatches })},
		{"No event ID", finding(func(r *client.RouteReport) *client.Finding { return &r.MissingEventIDs })},
		{"Bad signature", finding(func(r *client.RouteReport) *client.Finding { return &r.Forged })},
		{"Unreadable", finding(func(r *client.RouteReport) *client.Finding { return &r.Unnamed })},
		{"Changes between attempts", func(r *client.RouteReport) cell {
			if r.Changing == nil {
				return cell{}
			}
			return cell{Text: strings.Join(r.Changing.Members, ", "), Class: "warn"}
		}},
		{"Wrong event ID", func(r *client.RouteReport) cell {
			if r.WrongEventID == nil {
				return cell{}
			}
			return cell{Text: r.WrongEventID.EventID, Class: "warn", Title: r.WrongEventID.Text()}
		}},
	}
}

// example is one delivery with a problem.
type example struct {
	route, kind string
	client.Example
}

// examplesOf lists the newest of each kind.
func examplesOf(report *client.Report) section {
	var all []example
	for i := range report.Routes {
		r := &report.Routes[i]
		for _, f := range []struct {
			kind string
			of   *client.Finding
		}{
			{"stale", &r.Stale}, {"duplicate", &r.Duplicates}, {"changed duplicate", &r.Changed}, {"busy", &r.Overlaps},
			{"mismatch", &r.Mismatches}, {"no event ID", &r.MissingEventIDs}, {"bad signature", &r.Forged},
			{"unreadable", &r.Unnamed}, {"twin", &r.Twins},
		} {
			for _, e := range f.of.Examples {
				all = append(all, example{r.Route, f.kind, e})
			}
		}
	}
	s := section{ID: "examples", Title: "Examples", Note: "The newest of each kind."}
	if len(all) > 0 {
		s.Table = lineTable("Examples", exampleColumns(), all)
	}
	return s
}

func exampleColumns() []column[example] {
	return []column[example]{
		{"When", func(e *example) cell { return cell{At: e.At.Time, Way: "ago"} }},
		{"Route", func(e *example) cell { return textCell(e.route) }},
		{"Problem", func(e *example) cell { return textCell(e.kind) }},
		{"Sender got", func(e *example) cell { return numberCell(int64(e.Status)) }},
		{"Why", func(e *example) cell {
			switch {
			case e.Signature != "":
				return titledCell("signature: " + e.Signature)
			case e.Code != "":
				return titledCell(e.Code)
			case e.TwinOf != "":
				return titledCell("has the body of " + e.TwinOf)
			case len(e.Differs) > 0:
				return titledCell("another " + strings.Join(e.Differs, ", ") +
					" than the first delivery of the event ID")
			}
			return titledCell(idem.Decision(e.Decision).Row().Happened)
		}},
		{"Workflow", func(e *example) cell { return cutCell(e.Workflow) }},
		{"Event", func(e *example) cell {
			if e.Key == "" {
				return cell{}
			}
			return cell{Text: e.Key[:min(16, len(e.Key))], Class: "id", Title: e.Key,
				Href: screenLink("story", "key", e.Key, "workflow", e.Workflow)}
		}},
		{"Trace", func(e *example) cell {
			return cell{Text: e.TraceID[:min(8, len(e.TraceID))], Class: "id", Title: e.TraceID}
		}},
	}
}

// rulesOf is what a route does and what is known of its sender, folded; what its sender is about to
// do is not.
func rulesOf(r *client.RouteRules) section {
	s := section{ID: "route-" + r.Route, Title: "Route " + r.Route, Fold: "Rules, answers and sender",
		Facts: []fact{{"path", []cell{textCell(r.Path)}}, {"mode", []cell{textCell(r.Mode)}}}}
	add := func(name string, cells ...cell) {
		if len(cells) > 0 && cells[0].Text != "" {
			s.Facts = append(s.Facts, fact{name, cells})
		}
	}
	if p := r.Sender; p != nil {
		add("sender", textCell(p.Preset))
		if p.Patience > 0 {
			add("waits for an answer", textCell(story.Span(secondsDuration(p.Patience))))
		}
		add("retries", textCell(p.RetriesOn))
		if p.RetriesFor > 0 {
			add("retries for", textCell(story.Span(secondsDuration(p.RetriesFor))))
		}
		add("disables the endpoint", textCell(p.GivesUp))
		near := nearnessCells(p.Limits)
		add("failures so far", near...)
		if slices.ContainsFunc(p.Limits, func(l client.SenderLimit) bool { return l.Ratio >= 0.5 }) {
			s.Lead = []cell{{More: append([]cell{{Text: "Failures until the sender disables this endpoint: "}},
				near...)}}
		}
	}
	s.Table = tableOf("What each decision answers on route "+r.Route, []column[client.RouteAnswer]{
		{"Decision", func(a *client.RouteAnswer) cell {
			return cell{Text: a.Decision,
				Href: screenLink("find", "route", r.Route, "decision", a.Decision, "since", "24h")}
		}},
		{"Answers", func(a *client.RouteAnswer) cell { return textCell(a.Text) }},
	}, r.Answers, func(a *client.RouteAnswer) string { return a.Decision })
	return s
}

// nearnessCells returns how near a sender is to each of its limits.
func nearnessCells(limits []client.SenderLimit) []cell {
	var all []cell
	for _, l := range limits {
		c := cell{Text: fmt.Sprintf("%.0f%% of %s", 100*l.Ratio, strings.ReplaceAll(l.Limit, "_", " "))}
		switch {
		case l.Ratio >= 1:
			c.Class = "bad"
		case l.Ratio >= 0.5:
			c.Class = "warn"
		}
		all = append(all, c)
	}
	return all
}
