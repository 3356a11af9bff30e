package naming

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"hooklock/idem"
)

// MissingEventID says what happens to a delivery that carries no event ID. The zero value is
// MissingPayload.
type MissingEventID string

// The policies for a missing event ID.
const (
	MissingPayload MissingEventID = "payload" // the fingerprint is the key; without a body there is none
	MissingReject  MissingEventID = "reject"  // it is refused: 400
	MissingPass    MissingEventID = "pass"    // it goes through without a key
	MissingRun     MissingEventID = "run"     // it runs as an event of its own
)

// Choices lists the policies for a missing event ID.
func (MissingEventID) Choices() []string {
	return []string{string(MissingPayload), string(MissingReject), string(MissingPass), string(MissingRun)}
}

// EventIDOfPreset stands for a template if no template can read the event ID: the sender's preset
// reads it, as KeySpec.Extract.
const EventIDOfPreset = "{preset}"

// Bounds of names.
const (
	// MaxValue is the longest value of one source, decoded, in bytes.
	MaxValue = 512
	// MaxName is the longest workflow or event ID as built and escaped, in bytes. One value,
	// escaped to 1536 at worst, fits with 512 bytes of text around it.
	MaxName = 2048
)

// KeySpec says how the deliveries of one route are named.
type KeySpec struct {
	Route    string
	Workflow string // a template; see CompileTemplate
	EventID  string // a template; empty: deliveries carry no event ID, or Extract reads it
	// Extract reads the event ID if no template can; then EventID is empty.
	Extract Extractor
	Missing MissingEventID
	// PerRequest: two requests of one event ID are two events (on_mismatch: execute), so the
	// fingerprint belongs to the key.
	PerRequest bool
	Open       Open // what the signature of a delivery leaves open
	// Ignore are the members that the fingerprint leaves out; see CompileIgnored.
	Ignore []string
	// SameEvent: events of one body are one event, so the fingerprint leaves the event ID out, too.
	SameEvent bool
	// OrderBy is the template of an event's position in its scope; empty: order is not checked.
	// OrderScope is that of the scope, inside of the workflow; empty: the workflow is one scope.
	OrderBy, OrderScope string
	OrderUnit           idem.OrderUnit
	// Labels are what the event is found by, beside its ID.
	Labels []LabelSpec
	// Question is the template of the URL that says what became of an event; empty: there is none.
	Question string
	// Uses are the limits that deliveries count against, as limits.shared names them: each is a
	// template.
	Uses []string
}

// Keys names the deliveries of one route. It is immutable and may be shared.
type Keys struct {
	route    string
	workflow *Template
	event    *Template // nil: extract reads the event ID
	extract  Extractor // nil with event: deliveries carry no event ID
	missing  MissingEventID
	request  bool // the fingerprint belongs to each key
	open     Open
	ignored  *Ignored  // nil: everything counts
	order    *ordering // nil: order is not checked
	uses     []*Template
	labels   []label
	question *Template // nil: nothing is asked

	withoutID *Ignored // for TwinPrint; nil: the event ID is in no part of the fingerprint
}

// NewKeys compiles the templates of spec. Its errors say which template is wrong, and a
// *TemplateError in them where.
func NewKeys(spec KeySpec) (*Keys, error) {
	set := new(bodySet)
	k := &Keys{route: spec.Route, missing: spec.Missing, extract: spec.Extract, request: spec.PerRequest,
		open: spec.Open}
	var err error
	if k.ignored, err = CompileIgnored(spec.Ignore); err != nil {
		return nil, fmt.Errorf("ignore: %w", err)
	}
	if k.workflow, err = compileTemplate(spec.Workflow, set); err != nil {
		return nil, fmt.Errorf("workflow: %w", err)
	}
	for _, use := range spec.Uses {
		t, err := compileTemplate(use, set)
		if err != nil {
			return nil, fmt.Errorf("uses: %w", err)
		}
		k.uses = append(k.uses, t)
	}
	if k.labels, err = newLabels(spec.Labels, set); err != nil {
		return nil, err
	}
	if spec.Question != "" {
		if k.question, err = compileTemplate(spec.Question, set); err != nil {
			return nil, fmt.Errorf("ask.url: %w", err)
		}
	}
	switch spec.Missing {
	case "":
		k.missing = MissingPayload
	case MissingPayload, MissingReject, MissingPass, MissingRun:
	default:
		return nil, fmt.Errorf("on_missing_event_id: unknown policy %q, use payload, reject or pass", spec.Missing)
	}
	if k.order, err = newOrdering(&spec, set); err != nil {
		return nil, err
	}
	if spec.EventID == "" {
		return k, nil
	}
	if spec.Extract != nil {
		return nil, errors.New("event_id: give a template or an extractor, not both")
	}
	if k.event, err = compileTemplate(spec.EventID, set); err != nil {
		return nil, fmt.Errorf("event_id: %w", err)
	}
	if k.event.Constant() {
		return nil, errors.New("event_id: reads nothing of the delivery, so that all would be one event: use a " +
			"source such as {header.Idempotency-Key} or {body.id}")
	}
	k.withoutID = withoutID(spec.Ignore, k.event)
	if spec.SameEvent && k.withoutID != nil {
		k.ignored, k.withoutID = k.withoutID, nil
	}
	return k, nil
}

// ReadsEventID reports whether deliveries can have an event ID at all. Otherwise each is its own
// event, or its payload is the key.
func (k *Keys) ReadsEventID() bool { return k.event != nil || k.extract != nil }

// Limited reports whether deliveries count against shared limits.
func (k *Keys) Limited() bool { return len(k.uses) > 0 }

// Names is how one delivery is called.
type Names struct {
	// Workflow is the scope of its lock; EventID is what the sender calls the event, empty when it
	// says nothing. Both are printable: in each value "%", control characters, line and direction
	// marks and bytes that are not UTF-8 are written as %XX, so that two values never look the same
	// and none can end a header or a log line. Two lists of values may still build one workflow
	// ("a/b" and "c", "a" and "b/c"): these take turns, and their keys differ.
	Workflow, EventID string
	// Source is where the event ID came from: "header.Idempotency-Key", or several with a comma
	// between them.
	Source string
	// Key names the event inside route and workflow. It is empty when Missing is set, and of a
	// delivery that has neither an event ID nor a body: each of these is an event of its own.
	Key         idem.Key
	Fingerprint idem.Fingerprint
	Parts       idem.Parts // of the fingerprint
	// ByPayload says that the fingerprint is (part of) the key, so PayloadRetention applies.
	ByPayload bool
	// Missing says that there is no event ID, and the route lets such deliveries pass without a
	// key.
	Missing bool
	// Order is where the event stands in its scope; nil where that is not asked, or cannot be read.
	// Ordered says how it was found.
	Order   *idem.Order
	Ordered Ordered
	// Limits are those that it counts against, each named as it is for this delivery, without a
	// slot yet.
	Limits []idem.Slot
	// Labels are those that the delivery has.
	Labels idem.Labels
	// Question is the URL, or the path of the upstream, that says what became of the event; "" =
	// there is none.
	Question string
}

// Name builds the names of m. Its error is a *NameError, and the Names then hold what was known
// before it.
//
// The key is hashed over the values as they were found, not over the printable strings, and over
// the length of each, so that "a" and "bc" are never "ab" and "c". A number or boolean in JSON and
// a string that spells the same are the same value.
func (k *Keys) Name(m *Message) (Names, error) {
	names, err := k.readNames(m)
	if err != nil || names.Missing {
		return names, err
	}
	k.readAnnotations(m, &names)
	return names, nil
}

// NameAll returns the names of m as far as it has them, and each reason why it cannot be named, of
// which Name returns the first. It is for people who try a template.
func (k *Keys) NameAll(m *Message) (Names, []*NameError) {
	names, err := k.readNames(m)
	var faults []*NameError
	if err != nil {
		m.scratch.beginDelivery(k.route)
		var workflow, limits error
		names.Workflow, workflow = k.nameWorkflow(m)
		names.Limits, limits = k.readLimits(m)
		for _, err := range []error{workflow, limits, k.nameEvent(m, &names)} {
			if bad, is := errors.AsType[*NameError](err); is {
				faults = append(faults, bad)
			}
		}
		names.Key = ""
	}
	if !names.Missing {
		k.readAnnotations(m, &names)
	}
	return names, faults
}

// readAnnotations adds what names do not need: the order, the labels and the question.
func (k *Keys) readAnnotations(m *Message, names *Names) {
	if k.order != nil {
		k.order.readPosition(m, names)
	}
	if len(k.labels) > 0 {
		names.Labels = readLabels(m, k.labels)
	}
	if k.question != nil {
		names.Question = readQuestion(m, k.question)
	}
}

func (k *Keys) readNames(m *Message) (Names, error) {
	s := &m.scratch
	s.beginDelivery(k.route)
	s.fingerprint = FingerprintOf(m, k.open, k.ignored)
	names := Names{Fingerprint: s.fingerprint, Parts: partsOf(m, k.open, k.ignored)}

	var err error
	if names.Workflow, err = k.nameWorkflow(m); err != nil {
		return names, err
	}
	if len(k.uses) > 0 {
		if names.Limits, err = k.readLimits(m); err != nil {
			return names, err
		}
	}
	err = k.nameEvent(m, &names)
	return names, err
}

func (k *Keys) nameWorkflow(m *Message) (string, error) {
	s := &m.scratch
	var failed *failure
	if s.workflow, failed = k.workflow.readParts(m, s.workflow); failed != nil {
		return "", failed.nameError(PartWorkflow, CodeWorkflowMissing)
	}
	return s.printableName(s.workflow, PartWorkflow)
}

// nameEvent fills in the event ID, or what stands for it, and the key.
func (k *Keys) nameEvent(m *Message, names *Names) (err error) {
	s := &m.scratch
	var failed *failure
	switch {
	case k.event != nil:
		s.event, failed = k.event.readParts(m, s.event)
	case k.extract != nil:
		s.event, failed = k.extract.readParts(m, s.event)
	default:
		failed = &failure{result: missing}
	}
	if failed != nil && failed.result == missing {
		return k.nameWithoutEventID(m, names, failed)
	}
	if failed != nil {
		return failed.nameError(PartEventID, CodeEventIDMissing)
	}
	if names.EventID, err = s.printableName(s.event, PartEventID); err != nil {
		return err
	}
	names.Source, names.ByPayload = sourcesOf(s.event)
	names.Key = s.hashKey(names.EventID, k.request && !names.ByPayload)
	return nil
}

// readLimits returns those that a delivery counts against. Two rules that make one name are one
// limit.
func (k *Keys) readLimits(m *Message) ([]idem.Slot, error) {
	s := &m.scratch
	slots := make([]idem.Slot, 0, len(k.uses))
	for _, use := range k.uses {
		parts, failed := use.readParts(m, nil)
		if failed != nil {
			return nil, failed.nameError(PartLimit, CodeLimitMissing)
		}
		name, err := s.printableName(parts, PartLimit)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(slots, func(o idem.Slot) bool { return o.LimitName == name }) {
			slots = append(slots, idem.Slot{LimitName: name, Rule: use.String(), Index: -1})
		}
	}
	return slots, nil
}

// nameWithoutEventID names a delivery whose event ID is missing.
func (k *Keys) nameWithoutEventID(m *Message, names *Names, why *failure) error {
	switch k.missing {
	case MissingReject:
		return why.nameError(PartEventID, CodeEventIDMissing)
	case MissingPass:
		names.Missing = true
		return nil
	}
	value, _ := payload.reader.readValue(m)
	s := &m.scratch
	s.event = append(s.event[:0], part{source: &payload, value: value})
	names.Source, names.ByPayload = sourcesOf(s.event)
	if len(m.Body) == 0 || k.missing == MissingRun { // all that is known is that it came
		names.Source = ""
		return nil
	}
	text, err := s.printableName(s.event, PartEventID)
	if err != nil {
		return err
	}
	names.Key = s.hashKey(text, false)
	return nil
}

// payload is the source that replaces a missing event ID. It makes the same key as {fingerprint} in
// a template.
var payload = alternative{
	Source: Source{Kind: SourceFingerprint, Text: string(SourceFingerprint)},
	hashed: string(SourceFingerprint),
	reader: fingerprintSource{},
}

// sourcesOf returns where the values came from, and whether the fingerprint is among them.
func sourcesOf(parts []part) (text string, byPayload bool) {
	var last *alternative
	for _, p := range parts {
		if p.source == nil || p.source == last {
			continue
		}
		last = p.source
		if text == "" {
			text = p.source.Text
		} else {
			text += "," + p.source.Text
		}
		byPayload = byPayload || p.source.Kind == SourceFingerprint
	}
	return text, byPayload
}

// printableName builds the printable name of parts.
func (s *scratch) printableName(parts []part, name string) (string, error) {
	line := s.line[:0]
	for _, p := range parts {
		if p.source == nil {
			line = append(line, p.value...)
		} else {
			line = appendPrintable(line, p.value)
		}
	}
	s.line = line
	if len(line) > MaxName {
		return "", &NameError{Code: CodeKeyTooLong, Part: name,
			Detail: fmt.Sprintf("the %s is longer than %d bytes: send shorter values", partWords(name), MaxName)}
	}
	return string(line), nil
}

// hashKey hashes the route and the parts of workflow and event ID. Its first half is that of the
// event's printable text alone: so an event is found by its sender's name for it, whatever its
// route and workflow. perRequest hashes the fingerprint, too.
func (s *scratch) hashKey(eventID string, perRequest bool) idem.Key {
	b := appendSized(s.line[:0], s.route)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.workflow)))
	for _, p := range s.workflow {
		b = appendSized(b, p.value)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.event)))
	for _, p := range s.event {
		source := "" // literal text
		if p.source != nil {
			source = p.source.hashed
		}
		b = appendSized(b, source)
		b = appendSized(b, p.value)
	}
	if perRequest {
		b = appendSized(b, s.fingerprint[:])
	}
	s.line = b
	sum := sha256.Sum256(b)
	return idem.MakeKey(idem.HashEventID(eventID), [16]byte(sum[:16]))
}

// appendSized appends v behind its length.
func appendSized[T string | []byte](b []byte, v T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}
