package page

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

const (
	// attentionEvery is how often a stream reads what needs attention.
	attentionEvery = 10 * time.Second
	// mostAsked bounds the items whose execution is read for its buttons.
	mostAsked = 10
)

// needsScreen shows everything that needs attention.
func needsScreen(v *visit) ([]section, error) {
	s, err := v.attentionSection(true)
	if err != nil {
		return nil, err
	}
	if _, err := v.readMarks(); err != nil {
		return nil, err
	}
	return []section{s, v.lookedAt()}, nil
}

// attentionList reads what needs attention, once.
func (v *visit) attentionList() (*client.Attention, error) {
	if v.needs != nil {
		return v.needs, nil
	}
	var err error
	v.needs, err = readObject[client.Attention](v, "/v1/attention")
	return v.needs, err
}

// kept is what a stream shows for a while: the summary, and what was counted.
type kept struct {
	section
	at       time.Time
	counts   map[string]*client.CountList // by how far they go back
	countsAt time.Time
}

// readAttention returns what needs attention, for the overview; a stream reads it now and then.
func (v *visit) readAttention() (section, error) {
	if v.kept == nil {
		return v.attentionSection(false)
	}
	if v.now.Sub(v.kept.at) >= attentionEvery {
		s, err := v.attentionSection(false)
		if err != nil {
			return s, err
		}
		v.kept.section, v.kept.at = s, v.now
	}
	return v.kept.section, nil
}

// attentionSection shows the list: in full, or each item on one line, which may be cut.
func (v *visit) attentionSection(full bool) (section, error) {
	list, err := v.attentionList()
	if err != nil {
		return section{}, err
	}
	s := section{ID: "attention", Title: "Needs attention", Count: len(list.Items)}
	if n := list.LookedAt; n > 0 {
		s.Links = []link{{fmt.Sprintf("%d looked at", n), "#needs"}}
	}
	if len(list.NotKnown) > 0 {
		s.Trouble = "Not known: " + strings.Join(list.NotKnown, "; ") + "."
	}
	switch {
	case list.Limited:
		s.Note = "Of the workflows of this token alone. Not for this token: routes, replicas and etcd, which are " +
			"over all of them."
	case len(list.Items) == 0 && s.Trouble == "" && list.LookedAt > 0:
		s.Note = "Besides what was looked at: nothing, on any replica."
	case len(list.Items) == 0 && s.Trouble == "":
		s.Note = "On any replica."
	}
	if len(list.Items) == 0 {
		if s.Note != "" && !list.Limited {
			s.Title = "Nothing needs attention"
		}
		return s, nil
	}
	asked := 0
	s.Table = tableOf("What needs attention", []column[client.AttentionItem]{
		{"What", func(i *client.AttentionItem) cell {
			c := cell{Text: i.Text, Class: "warn", Href: placeOf(i), Title: i.Text}
			if i.Bad {
				c.Class = "bad"
			}
			return c
		}},
		{"Cause", func(i *client.AttentionItem) cell {
			if full {
				return textCell(i.CauseText())
			}
			return titledCell(strings.Trim(i.CauseText()+"; "+i.Next, "; "))
		}},
		{"Since", func(i *client.AttentionItem) cell { return timeCell(i.SinceAt, "at") }},
		{"What follows", func(i *client.AttentionItem) cell {
			if !full {
				return cell{}
			}
			return textCell(i.Next)
		}},
		{"Actions", func(i *client.AttentionItem) cell {
			asked++
			return cell{Asks: v.asksOf(i, list, asked <= mostAsked)}
		}},
	}, list.Items, func(i *client.AttentionItem) string { return i.ID })
	s.Table.Lines = !full
	return s, nil
}

// placeOf returns the screen that shows what an item is about.
func placeOf(i *client.AttentionItem) string {
	switch {
	case i.ExecutionID != "":
		return screenLink("story", "id", i.ExecutionID)
	case i.Kind == client.AttentionReplicaGone, i.Kind == client.AttentionConfigDiffers,
		i.Kind == client.AttentionConfigRefused, i.Kind == client.AttentionEtcdDown, i.Kind == client.AttentionEtcdFull:
		return "#now"
	case i.Kind == client.AttentionBadSignatures:
		return screenLink("signatures", "route", i.Route)
	case len(i.Query) == 0:
		return "#routes"
	}
	var pairs []string
	for name, value := range i.Query {
		if name != "parked" { // a state says it
			pairs = append(pairs, name, value)
		}
	}
	return screenLink("find", pairs...)
}

// asksOf are the buttons of an item.
func (v *visit) asksOf(i *client.AttentionItem, list *client.Attention, look bool) (asks []ask) {
	switch {
	case i.ExecutionID != "" && look:
		if x, err := v.getExecution(i.ExecutionID); err == nil {
			asks = asksOf(x)
		}
	case i.Kind == client.AttentionDeadLetters:
		asks = []ask{askFor("Rerun all…", "all-rerun", "state", string(client.ParkDeadLetter), "route", i.Route)}
	}
	if !list.Limited && i.Route != "" && slices.Contains(idem.ConcernKind("").Choices(), i.Kind) {
		asks = append(asks, askFor("Looked at…", "seen", "kind", i.Kind, "route", i.Route))
	}
	return asks
}

// lookedAt lists the marks; the section is hidden if there is none.
func (v *visit) lookedAt() section {
	s := section{ID: "seen"}
	if len(v.marks) == 0 {
		return s
	}
	s.Title, s.Count, s.Note = "Looked at", len(v.marks),
		"Left out above and in the count, on all replicas, for 30 days. What is newer is not left out."
	s.Table = tableOf("What was looked at", []column[client.SeenMark]{
		{"What", func(m *client.SeenMark) cell {
			kind, route, _ := strings.Cut(m.Concern, ":")
			c := cutCell(story.Words(kind) + " of " + route)
			c.Href = placeOfKind(kind, route)
			return c
		}},
		{"Until", func(m *client.SeenMark) cell { return timeCell(m.Until, "at") }},
		{"By", func(m *client.SeenMark) cell { return cutCell(m.By) }},
		{"Reason", func(m *client.SeenMark) cell { return cutCell(m.Reason) }},
		{"Actions", func(m *client.SeenMark) cell {
			return cell{Asks: []ask{askFor("Show again…", "unseen", "concern", m.Concern)}}
		}},
	}, v.marks, func(m *client.SeenMark) string { return m.Concern })
	return s
}

// placeOfKind returns the screen that lists all of one kind on a route.
func placeOfKind(kind, route string) string {
	of := map[string][]string{
		client.AttentionDeadLetters: {"state", string(client.ParkDeadLetter)},
		client.AttentionBlocked:     {"state", string(client.ParkBlocked)},
		client.AttentionUnknown:     {"outcome", string(client.Unknown), "status", string(client.Failed)},
		client.AttentionExhausted: {"decision", string(idem.DecisionExhausted), "status", string(client.Failed),
			"since", "24h"},
		client.AttentionReused: {"decision", string(idem.DecisionMismatch), "since", "24h"},
		client.AttentionLost:   {"lost", "true", "since", "24h"},
	}[kind]
	if of == nil {
		return "#routes"
	}
	return screenLink("find", append(of, "route", route)...)
}

// readMarks reads what was looked at. away: etcd does not answer. A token that is limited to some
// workflows sees no marks, and nothing is hidden from it.
func (v *visit) readMarks() (away bool, err error) {
	list, err := readObject[client.SeenList](v, "/v1/seen")
	switch {
	case err == nil:
		v.marks = list.Seen
	case isProblem(err, client.CodeStoreUnavailable):
		return true, nil
	case !isLimited(err):
		return false, err
	}
	return false, nil
}

// askSeen asks whether what needs attention is to be marked as looked at: of one kind, on one route
// or on all.
func askSeen(v *visit) (*question, error) {
	kind, only := v.query.Get("kind"), v.query.Get("route")
	if !slices.Contains(idem.ConcernKind("").Choices(), kind) {
		return nil, &client.Problem{Status: http.StatusNotFound, Code: client.CodeNotFound, Detail: "no such kind"}
	}
	list, err := v.attentionList()
	if err != nil {
		return nil, err
	}
	q := &question{Title: "Looked at: " + story.Words(kind), Verb: "Mark as looked at", Reason: true}
	newest, texts := map[string]time.Time{}, map[string][]string{}
	for i := range list.Items {
		one := &list.Items[i]
		// those of the lock API have no route
		if one.Kind != kind || one.Route == "" || only != "" && one.Route != only {
			continue
		}
		if one.LatestAt.After(newest[one.Route]) {
			newest[one.Route] = one.LatestAt.Time
		}
		texts[one.Route] = append(texts[one.Route], one.Text)
	}
	for _, route := range slices.Sorted(maps.Keys(texts)) {
		concern, until := idem.Concern{Kind: idem.ConcernKind(kind), Route: route}.String(),
			newest[route].UTC().Format("2006-01-02T15:04:05.000Z")
		q.Facts = append(q.Facts, fmt.Sprintf("%s, up to %s.", strings.Join(texts[route], ", "),
			formatTime(newest[route])))
		q.Requests = append(q.Requests, request{
			Method: http.MethodPost, Path: "v1/seen", Body: map[string]any{"concern": concern, "until": until},
			Reason: "body", Names: concern, Done: concern + " is marked as looked at",
		})
		q.Commands = append(q.Commands, hooklockCommand("seen", argument(concern), "--until", until, "--reason",
			theReason))
	}
	if len(q.Requests) == 0 {
		q.Stop = "None is left."
		return q, nil
	}
	q.Facts = append(q.Facts, "These leave the list and the count, on all replicas, for 30 days. Nothing is done "+
		"with the events.", "What is newer, of the same kind and route, needs attention again.")
	return q, nil
}

// askUnseen asks whether a mark is to be removed.
func askUnseen(v *visit) (*question, error) {
	concern := v.query.Get("concern")
	return &question{
		Title: "Show again: " + concern, Verb: "Show again", Reason: true,
		Facts: []string{"All of it that is still kept needs attention again, on all replicas."},
		Requests: []request{{Method: http.MethodDelete, Path: "v1/seen/" + pathSegment(concern), Reason: "query",
			Names: concern, Done: concern + " is shown again"}},
		Commands: []shellLine{hooklockCommand("seen", argument(concern), "--undo", "--reason", theReason)},
	}, nil
}
