package naming

import "hooklock/idem"

// withoutID returns what a TwinPrint leaves out: what the fingerprint does, and the members of body
// and query that the event ID is read from. It returns nil if event reads none.
func withoutID(ignored []string, event *Template) *Ignored {
	left := &Ignored{}
	for _, path := range ignored {
		_ = left.addPath(path) // NewKeys has compiled it
	}
	reads := false
	for _, s := range event.Sources() {
		switch s.Kind {
		case SourceBody, SourceForm, SourceXML, SourceQuery:
			reads = left.addPath(s.Text) == nil || reads // what cannot be left out counts
		}
	}
	if !reads {
		return nil
	}
	return left
}

// TwinPrint returns a fingerprint of m in which its event ID does not count: two events with one
// TwinPrint are twins. names are those of m. ok is false if nothing can be said: the delivery has
// no event ID, the payload is part of its key, or nothing of a body counts.
func (k *Keys) TwinPrint(m *Message, names *Names) (twin idem.Fingerprint, ok bool) {
	switch {
	case !k.HasTwins(m, names):
		return twin, false
	case k.withoutID == nil:
		return names.Fingerprint, true
	}
	return FingerprintOf(m, k.open, k.withoutID), true
}

// HasTwins reports whether m may have a twin. names are those of m. With KeySpec.SameEvent its
// fingerprint is its TwinPrint.
func (k *Keys) HasTwins(m *Message, names *Names) bool {
	return names.EventID != "" && !names.ByPayload && len(m.Body) > 0 && (k.ignored == nil || !k.ignored.all)
}
