package page

import (
	"cmp"
	"fmt"
	"strconv"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// suggestionsScreen shows the routes that fit the deliveries which came, each to paste into the
// configuration.
func suggestionsScreen(v *visit) ([]section, error) {
	since := cmp.Or(v.query.Get("since"), "24h")
	head := section{
		ID: "suggestions", Title: "Suggestions", Empty: "No delivery came to learn from: send one, or wait.",
		Search: &search{"suggestions",
			[]input{{Name: "since", Label: "Since", Value: since, Hint: "24h, or a time", Main: true}}},
	}
	list, err := readObject[client.SuggestionList](v, "/v1/suggestions", "since", since)
	if err != nil {
		return head.aloneWithout(err, "Not known: etcd does not answer.")
	}
	head.Count = len(list.Suggestions)
	head.Note = fmt.Sprintf("Learned by %s from hashes of deliveries, since its start. No value is kept.", list.Replica)
	if list.Others > 0 {
		head.Note += " Not from those that came to " +
			story.Count(list.Others, "other replica", "other replicas") + "."
	}
	if !list.Recording {
		head.Trouble = "limits.suggestions is 0B, so nothing is learned from deliveries."
	}
	all := []section{head}
	for i := range list.Suggestions {
		all = append(all, suggestionOf(i, &list.Suggestions[i]))
	}
	return all, nil
}

func suggestionOf(n int, s *client.Suggestion) section {
	one := section{ID: fmt.Sprintf("suggestion-%d", n), Title: s.Path, Paste: s.Paste()}
	add := func(name string, c ...cell) { one.Facts = append(one.Facts, fact{name, c}) }
	if s.Configured {
		add("Route", textCell(s.Route))
	} else {
		add("Route", cell{Text: "none", Class: "warn"})
	}
	add("Deliveries", numberCell(int64(s.Deliveries)))
	add("Latest", timeCell(s.Until, "ago"))
	if p := s.Predicted; p != nil {
		add("It would run", textCell(strconv.Itoa(p.Events)))
		add("answer as repeats", textCell(strconv.Itoa(p.Repeats)))
		add("refuse", textCell(strconv.Itoa(p.Others)))
	}
	return one
}
