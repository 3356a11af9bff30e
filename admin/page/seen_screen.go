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

// readMarks reads what was looked at. away: etcd does not answer. A token that is limited to some
// workflows sees no marks, and nothing is hidden from it.
func (v *visit) readMarks() (away bool, err error) {
	list, err := read[client.SeenList](v, "/v1/seen")
	switch {
	case err == nil:
		v.marks = list.Seen
	case is(err, client.CodeStoreUnavailable):
		return true, nil
	case !limited(err):
		return false, err
	}
	return false, nil
}

// seen asks whether what needs attention is to be marked as looked at: of one kind, on one route or
// on all.
func seen(v *visit) (*question, error) {
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
		q.Facts = append(q.Facts, fmt.Sprintf("%s, up to %s.", strings.Join(texts[route], ", "), stamp(newest[route])))
		q.Requests = append(q.Requests, request{
			Method: http.MethodPost, Path: "v1/seen", Body: map[string]any{"concern": concern, "until": until},
			Reason: "body", Names: concern, Done: concern + " is marked as looked at",
		})
		q.Commands = append(q.Commands, command("seen", argument(concern), "--until", until, "--reason", theReason))
	}
	if len(q.Requests) == 0 {
		q.Stop = "None is left."
		return q, nil
	}
	q.Facts = append(q.Facts, "These leave the list and the count, on all replicas, for 30 days. Nothing is done "+
		"with the events.", "What is newer, of the same kind and route, needs attention again.")
	return q, nil
}

// unseen asks whether a mark is to be removed.
func unseen(v *visit) (*question, error) {
	concern := v.query.Get("concern")
	return &question{
		Title: "Show again: " + concern, Verb: "Show again", Reason: true,
		Facts: []string{"All of it that is still kept needs attention again, on all replicas."},
		Requests: []request{{Method: http.MethodDelete, Path: "v1/seen/" + escape(concern), Reason: "query",
			Names: concern, Done: concern + " is shown again"}},
		Commands: []shellLine{command("seen", argument(concern), "--undo", "--reason", theReason)},
	}, nil
}
