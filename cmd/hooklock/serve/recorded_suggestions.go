package serve

import (
	"time"

	"hooklock/admin/client"
	"hooklock/proxy/suggest"
)

// suggest returns the routes that fit the deliveries of this process. It implements
// admin.Options.Suggest.
func (s *Service) suggest(since time.Time) client.SuggestionList {
	found := s.learner.Suggest(since)
	list := client.SuggestionList{
		Replica: s.replica, Recording: s.learner != nil, Passed: int64(found.Passed), Missed: int64(found.Missed),
		Suggestions: []client.Suggestion{},
	}
	for _, one := range found.Suggestions {
		list.Suggestions = append(list.Suggestions, viewOfSuggestion(one))
	}
	return list
}

func viewOfSuggestion(s *suggest.Suggestion) client.Suggestion {
	view := client.Suggestion{
		Route: s.Name, Configured: s.Configured, Path: s.Path, Deliveries: s.Deliveries,
		Since: client.Time{Time: s.Since}, Until: client.Time{Time: s.Until},
		Preset: s.Preset, EventID: s.EventID, Workflow: s.Workflow, Ignore: s.Ignore, YAML: s.YAML(),
		Sentences: s.Sentences,
	}
	if p := s.Predicted; p != nil {
		view.Predicted = &client.Predicted{Events: p.Events, Repeats: p.Repeats, Others: p.Others}
	}
	return view
}
