package suggest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
)

// Suggestion is the route to write for a path, and why.
type Suggestion struct {
	Name, Path   string
	Configured   bool // a route of that name and path took the deliveries
	Deliveries   int
	Since, Until time.Time // of the first and the last delivery
	Preset       string    // of the sender that they look like; empty: of none
	EventID      string    // the template; empty: that is not known
	Workflow     string    // the template; empty: that is not known
	Ignore       []string  // members that change between attempts
	// Predicted is what the route would have made of the deliveries one after the other, had the
	// service answered each event with success; nil if nothing names the events.
	Predicted *Prediction
	Sentences []string
	// Retention is idempotency.payload_retention; 0: the default is long enough, or the payload is
	// no key.
	Retention time.Duration
	comments  map[string]string // of lines of the route
	byPreset  bool              // the preset reads the event ID
}

// Prediction is what a route makes of deliveries.
type Prediction struct {
	Events  int // run once each
	Repeats int // get the first answer
	Others  int // are refused: the event's ID with another request
}

// Suggest returns the route for the deliveries since a moment; the zero time: all that are known.
// It returns nil without deliveries.
func (t *table) newSuggestion(name string, since time.Time) *Suggestion {
	rows := t.rows
	if i := slices.IndexFunc(rows, func(r row) bool { return !r.at.Before(since) }); i >= 0 {
		rows = rows[i:]
	} else {
		return nil
	}
	v := newView(t, rows)
	s := &Suggestion{Name: name, Path: t.path, Configured: t.route != "", Deliveries: len(rows), Since: rows[0].at,
		Until: rows[len(rows)-1].at, comments: map[string]string{}}
	s.addSentence("%s from %s to %s, %s; %d of them failed%s.", countText(len(rows), "delivery", "deliveries"),
		timeText(s.Since), timeText(s.Until),
		v.sendersText(), v.failureCount(), v.givenUp())
	if t.long > 0 {
		s.addSentence("%d bodies are longer than 64 KiB, have too many members or cannot be read: of these only the "+
			"whole "+
			"body was compared.", t.long)
	}
	event, hints := v.findEvent()
	preset := s.recognizeSender(v)
	if preset != nil {
		if key := v.keyOfTemplate(preset.EventID); key != nil {
			event, s.EventID = v.knownCandidate(key), preset.EventID
			s.comments["event_id"] = "as the preset " + preset.Name + " has it"
		}
	}
	if preset != nil && event == nil && preset.ExtractID != nil && preset.Scheme == "none" {
		s.byPreset = true // it needs no secret
		s.addSentence("The preset reads the event ID, which no template can, so what the route would make of these " +
			"deliveries is not predicted.")
	} else {
		s.nameEvent(v, event, hints)
	}
	s.nameWorkflow(v, event, preset)
	s.separatePaths()
	return s
}

// separatePaths puts the variables of the path into the workflow, unless event and workflow have
// them: an ID under two of them may be two events.
func (s *Suggestion) separatePaths() {
	vars := ""
	for _, v := range inBraces.FindAllString(s.Path, -1) {
		if source := "{path." + strings.Trim(v, "{}") + "}"; !strings.Contains(s.EventID+s.Workflow, source) {
			vars += "/" + source
		}
	}
	if vars != "" {
		rest, _ := strings.CutPrefix(s.Workflow, s.Name)
		s.Workflow = s.Name + vars + rest
	}
}

// knownCandidate returns a key that a preset is sure of, with what changes between attempts.
func (v *view) knownCandidate(k key) *candidate {
	c := &candidate{key: k}
	changed := map[int]bool{}
	for _, p := range k.repeatPairs() {
		failed, differ := v.rows[p.first].hasFailed(), v.differingMembers(p)
		for _, i := range differ {
			if !v.members[i].isArray && (failed || v.changeOf(&v.members[i]) == changeOfAttempt) {
				changed[i] = true
			}
		}
		c.good++
		if failed {
			c.failed++
		}
		if len(differ) == 0 {
			c.exact++
		}
	}
	for _, i := range slices.Sorted(maps.Keys(changed)) {
		c.ignore = append(c.ignore, &v.members[i])
	}
	return c
}

func (s *Suggestion) addSentence(format string, args ...any) {
	s.Sentences = append(s.Sentences, fmt.Sprintf(format, args...))
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func (v *view) failureCount() (n int) {
	for i := range v.rows {
		if v.rows[i].hasFailed() {
			n++
		}
	}
	return n
}

// givenUp says how many of the failures are deliveries whose senders did not wait for the answer.
func (v *view) givenUp() string {
	n := 0
	for i := range v.rows {
		if v.rows[i].left {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d because the sender did not wait for the answer)", n)
}

// recognizeSender notes the sender that the deliveries look like.
func (s *Suggestion) recognizeSender(v *view) *sender.Preset {
	found := sender.Recognize(len(v.rows), func(header string) int {
		i := slices.IndexFunc(v.members, func(m member) bool { return m.path == "header."+header })
		if i < 0 {
			return 0
		}
		return v.members[i].present
	})
	if found == nil {
		return nil
	}
	s.Preset = found.Preset.Name
	if found.Preset.Scheme == "none" {
		s.addSentence("%d of %d have %s, so the sender is %s, which signs nothing: preset %s.", found.Count,
			len(v.rows),
			strings.TrimPrefix(spelledSource("header."+found.Header), "header."), found.Preset.Page.Title, s.Preset)
		return found.Preset
	}
	s.addSentence("%d of %d have %s, so the sender is %s: preset %s with its secret in verify checks signatures, "+
		"too, and "+
		"replaces event_id.", found.Count, len(v.rows),
		strings.TrimPrefix(spelledSource("header."+found.Header), "header."), found.Preset.Page.Title, s.Preset)
	return found.Preset
}

// keyOfTemplate returns what a template makes of the deliveries; nil if it has no value in some of
// them, or reads what is not kept.
func (v *view) keyOfTemplate(text string) key {
	var k key
	for _, part := range inBraces.FindAllString(text, -1) {
		values := v.firstOf(strings.Split(strings.Trim(part, "{}"), "??"))
		if k == nil {
			k = make(key, len(v.rows))
		}
		for row, sum := range values {
			if sum == 0 {
				return nil
			}
			k[row] = (k[row]^sum)*1099511628211 | 1
		}
	}
	return k
}

var inBraces = regexp.MustCompile(`\{[^}]*\}`)

// firstOf returns the value of the first of sources that each delivery has; 0 if it has none.
func (v *view) firstOf(sources []string) key {
	values := make(key, len(v.rows))
	for _, source := range sources {
		source = strings.TrimSpace(source)
		if header, is := strings.CutPrefix(source, "header."); is {
			source = "header." + strings.ToLower(header)
		}
		i := slices.IndexFunc(v.members, func(m member) bool { return m.path == source && !m.isArray })
		for row := range values {
			switch {
			case values[row] != 0:
			case i >= 0:
				values[row] = v.members[i].values[row]
			case strings.HasPrefix(source, `"`): // a quoted text
				values[row] = 1
			}
		}
	}
	return values
}

func (s *Suggestion) nameEvent(v *view, event *candidate, hints []string) {
	if event == nil {
		s.explainUnknown(v, hints)
		return
	}
	if s.EventID == "" {
		s.EventID = event.templateText()
	}
	for _, m := range event.ignore {
		s.Ignore = append(s.Ignore, m.path)
	}
	slices.Sort(s.Ignore)
	payloads := v.payloadKey(event.ignore)
	s.Predicted = newPrediction(event.key, payloads)
	p := s.Predicted
	switch {
	case event.good == 0:
		s.addSentence("No repeat was seen yet, so what the sender changes between attempts is not known: send one " +
			"again, or " +
			"wait.")
	case len(event.ignore) > 0:
		s.addSentence("%s came again (%d after a failure): the same event, only %s differ.",
			countText(event.good, "delivery", "deliveries"), event.failed, strings.Join(s.Ignore, ", "))
	default:
		s.addSentence("%s came again (%d after a failure), %d of them with the same body.",
			countText(event.good, "delivery", "deliveries"), event.failed, event.exact)
	}
	s.addSentence(
		"With this route they are %s. Where the first delivery of each succeeds, it runs once, %s the first answer, "+
			"and %d would be refused.", countText(p.Events, "event", "events"),
		countText(p.Repeats, "repeat gets", "repeats get"), p.Others)
	if len(event.members) == 0 && s.EventID == "{fingerprint}" {
		if event.longest > 5*time.Minute {
			s.Retention = (2*event.longest + time.Hour).Truncate(time.Hour)
		}
		s.addSentence("No member names an event, so the payload does: two events with the same payload within " +
			"idempotency.payload_retention would be one.")
		s.compareChoices(v, event)
		return
	}
	missed, wrong := compareKeys(event.key, v.bodyKey())
	s.addSentence("The whole body as the key would have let %s run again, and stopped %s wrongly.",
		countText(missed, "repeat", "repeats"), countText(wrong, "delivery", "deliveries"))
	s.compareChoices(v, event)
	s.sayTwins(v, event)
	if event.good > 0 && event.good < 3 {
		s.addSentence("It is likely and not sure: only %s seen. More of them make it surer.",
			countText(event.good, "repeat was", "repeats were"))
	}
}

func (s *Suggestion) explainUnknown(v *view, hints []string) {
	repeats, failures := v.bodyKey().repeatPairs(), v.failureCount()
	switch {
	case s.Preset != "":
		s.addSentence("I do not know what names an event without the preset %s, which may read it where no template "+
			"can.",
			s.Preset)
	case len(repeats) == 0 && len(hints) > 0 && failures > 0:
		s.addSentence("I do not know what names an event: %d deliveries failed, and none came again. It may be %s, "+
			"if that "+
			"does not name the attempt: no value came twice.", failures, strings.Join(hints, ", "))
	case len(repeats) == 0 && len(hints) > 0:
		s.addSentence("I do not know what names an event: no repeat was seen yet: send one again, or wait. It may be "+
			"%s: no "+
			"value came twice.", strings.Join(hints, ", "))
	case len(hints) > 1:
		s.addSentence("I do not know what names an event: %s all fit. An event that has another value in only one of "+
			"them "+
			"would tell.", strings.Join(hints, ", "))
	case len(repeats) > 0:
		s.addSentence("I do not know what names an event: no member does, and %d deliveries have the same body as one "+
			"before, most of which had succeeded: they may be events of their own.", len(repeats))
	default:
		s.addSentence("I do not know what names an event: no delivery came again that could show it: send one again, " +
			"or wait.")
	}
	s.compareHints(v, hints)
	s.comments["on_missing_event_id"] = "until it is known, each delivery is an event of its own, so that none is lost"
}

// newPrediction counts what becomes of deliveries that are named by key.
func newPrediction(events, payloads key) *Prediction {
	p, first := &Prediction{}, map[uint64]uint64{}
	for i, sum := range events {
		switch before, known := first[sum]; {
		case !known:
			first[sum] = payloads[i]
			p.Events++
		case before == payloads[i]:
			p.Repeats++
		default:
			p.Others++
		}
	}
	return p
}

// compareKeys counts the repeats that another key misses, and the deliveries that it would take for
// repeats and are none.
func compareKeys(events, other key) (missed, wrong int) {
	known, stopping := map[uint64]bool{0: false}, map[uint64]bool{0: false}
	for i := range events {
		repeat, stopped := known[events[i]], stopping[other[i]]
		switch {
		case repeat && !stopped:
			missed++
		case stopped && !repeat:
			wrong++
		}
		known[events[i]], stopping[other[i]] = events[i] != 0, other[i] != 0
	}
	return missed, wrong
}

func (s *Suggestion) nameWorkflow(v *view, event *candidate, preset *sender.Preset) {
	found, others, hints := v.findWorkflow(event)
	s.compareWorkflows(v, v.firstDeliveries(event), found, others)
	switch {
	case found != nil:
		other := ""
		if found.partly {
			other = ` ?? "other"`
		}
		s.Workflow = fmt.Sprintf("%s/{%s%s}", s.Name, spelledSource(found.member.path), other)
		s.comments["workflow"] = fmt.Sprintf("%d values, %.1f events each; %d pairs overlapped", found.values,
			found.each, found.overlaps)
	case preset != nil && !strings.Contains(preset.Page.Workflow, "{path."):
		s.Workflow = preset.Page.Workflow
		s.comments["workflow"] = "as the page of the preset " + preset.Name + " has it"
	case len(hints) > 0:
		slices.Sort(hints)
		s.addSentence("I do not know what the workflow is: %s may be. Without workflow all of the route runs one at "+
			"a time.",
			strings.Join(slices.Compact(hints), ", "))
	default:
		s.addSentence("I do not know what the workflow is: no member that names a thing came again with another " +
			"event. " +
			"Without workflow all of the route runs one at a time.")
	}
}

// YAML returns the route, ready to paste below routes.
func (s *Suggestion) YAML() string {
	var b strings.Builder
	line := func(key, value string) {
		text := fmt.Sprintf("    %s: %s", key, value)
		if c := s.comments[key]; c != "" {
			text = fmt.Sprintf("%-50s # %s", text, c)
		}
		b.WriteString(text + "\n")
	}
	fmt.Fprintf(&b, "  - name: %s\n", s.Name)
	line("path", quotedYAML(s.Path))
	switch {
	case s.byPreset:
		line("preset", s.Preset)
	case s.EventID != "":
		line("event_id", quotedYAML(s.EventID))
	default:
		line("on_missing_event_id", string(naming.MissingRun))
	}
	if s.Workflow != "" {
		line("workflow", quotedYAML(s.Workflow))
	}
	if len(s.Ignore) > 0 {
		var all []string
		for _, path := range s.Ignore {
			all = append(all, quotedYAML(path))
		}
		line("ignore", "["+strings.Join(all, ", ")+"]")
	}
	if s.Retention > 0 {
		line("idempotency", "{payload_retention: "+idem.DurationText(s.Retention)+"}")
	}
	return b.String()
}

// quotedYAML writes a text as YAML.
func quotedYAML(text string) string {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return strconv.Quote(text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
