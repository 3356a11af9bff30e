package model

// attached waits for the end of the execution that runs. It never runs itself.
func (a *actor) attached() {
	s, e := a.s, a.event()
	t := a.delivery()
	rec, l := s.records[e], s.locks[a.m.lock(t.first)]
	switch {
	case rec.modified != 0 && (rec.by == t.first || a.m.breaks == attachToAnybody):
		a.step("copy finds the record", func(n *state, t *delivery) {
			if n.known.ended[t.first] != rec.outcome {
				a.m.broke(copyGetsTheSame)
			}
			t.finish(copied)
		})
	case s.queue[e].created != 0 && s.queue[e].by == t.first, l.created != 0 && l.by == t.first:
	case rec.settled():
		a.step("copy finds that another one has settled the event", func(_ *state, t *delivery) { t.finish(replayed) })
	default: // it was released, or its record is gone already: from here nobody can tell
		a.step("copy finds nothing", func(n *state, t *delivery) {
			if a.m.breaks == copySaysNotExecuted && n.known.upstream[t.first] != notCalled {
				a.m.broke(refusedBurnsNothing)
			}
			t.finish(lockLost)
		})
	}
	a.step("copy has waited long enough", func(_ *state, t *delivery) { t.finish(inFlight) })
}

// decided: a record after which the event does not run, as idem.Decide reads it.
func (m *model) decided(rec record) bool {
	return rec.settled() || rec.final || m.block && rec.outcome.unknown() || m.exhausts(rec)
}

// exhausts: a record of an event that had its only attempt, as idem.Policy.Exhausted reads it.
func (m *model) exhausts(rec record) bool {
	return m.once && (rec.outcome == failed || rec.outcome.unknown())
}
