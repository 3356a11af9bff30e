package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

const (
	lockPage = 500
	maxLocks = 2000 // on one screen
)

// nowScreen returns the overview: what needs attention, what is paused, what is busy, and the
// routes.
func nowScreen(v *visit) ([]section, error) {
	process, status, err := v.processSection()
	if err != nil {
		return nil, err
	}
	rates, err := v.countsSection(status, "now")
	if err != nil {
		return nil, err
	}
	attention, err := v.readAttention()
	if err != nil {
		return nil, err
	}
	locks, err := v.locksSection(status)
	if err != nil {
		return nil, err
	}
	limits, err := v.slotsSection(status)
	if err != nil {
		return nil, err
	}
	replicas, err := v.replicasSection()
	if err != nil {
		return nil, err
	}
	return []section{attention, pausedSection(status), rates, locks, limits, replicas, process}, nil
}

// slotPage is the number of slots, and of slot waiters, on a screen.
const slotPage = 200

// slotsSection lists the slots in use and the slot waiters, of all replicas; the section is hidden
// if there are none.
func (v *visit) slotsSection(status *client.ReplicaStatus) (section, error) {
	s := section{ID: "slots", Title: "Concurrency limits"}
	if status == nil {
		s.Note = notAll
		return s, nil
	}
	var all []client.Slot
	more := false
	for _, waiting := range []string{"", "true"} {
		page, err := readObject[client.SlotPage](v, "/v1/slots", "limit", fmt.Sprint(slotPage), "waiting", waiting)
		if err != nil {
			return s.withoutContent(err, "The slots are not known: etcd does not answer.")
		}
		all = append(all, page.Slots...)
		more = more || page.NextCursor != ""
	}
	if len(all) == 0 {
		return section{ID: "slots"}, nil
	}
	for _, limit := range limitsOf(all) {
		s.Facts = append(s.Facts, fact{limit.name,
			[]cell{textCell(fmt.Sprintf("%d in use, %d waiting, on all replicas", limit.taken, limit.waiting))}})
	}
	s.Table = tableOf("Slots in use and waiting", []column[client.Slot]{
		{"Limit", func(n *client.Slot) cell { return cutCell(n.Limit) }},
		{"Slot", func(n *client.Slot) cell {
			if n.Number < 0 {
				return cell{Text: "waiting", Class: "warn"}
			}
			return textCell(fmt.Sprintf("%d of %d", n.Number, n.Of))
		}},
		{"Workflow", func(n *client.Slot) cell { return cutCell(n.Workflow) }},
		{"Route", func(n *client.Slot) cell { return cutCell(n.Route) }},
		{"Execution", func(n *client.Slot) cell { return ofExecution(n.ExecutionID) }},
	}, all, func(n *client.Slot) string { return fmt.Sprint(n.Limit, n.Number, n.ExecutionID) })
	if s.Count = len(all); more {
		s.Table.More = fmt.Sprintf("More than %d: `hooklock locks slots` lists all.", slotPage)
	}
	return s, nil
}

// limitUse is how many slots of a limit are taken, and how many executions wait for one.
type limitUse struct {
	name           string
	taken, waiting int
}

// limitsOf adds up the slots of each limit, in their order.
func limitsOf(slots []client.Slot) (all []limitUse) {
	for i := range slots {
		at := slices.IndexFunc(all, func(l limitUse) bool { return l.name == slots[i].Limit })
		if at < 0 {
			at, all = len(all), append(all, limitUse{name: slots[i].Limit})
		}
		if slots[i].Number < 0 {
			all[at].waiting++
		} else {
			all[at].taken++
		}
	}
	return all
}

// pausedSection lists what is paused, as this replica knows it; the section is hidden if nothing
// is. status is nil if the token may not see it.
func pausedSection(status *client.ReplicaStatus) section {
	s := section{ID: "paused"}
	if status == nil || len(status.Paused) == 0 {
		return s
	}
	s.Title, s.Count, s.Note = "Paused", len(status.Paused), "No event of these starts, on any replica."
	s.Table = tableOf("What is paused", []column[client.PauseStatus]{
		{"Scope", func(p *client.PauseStatus) cell { return cutCell(p.Scope) }},
		{"Since", func(p *client.PauseStatus) cell { return timeCell(p.Since, "ago") }},
		{"Ends", func(p *client.PauseStatus) cell {
			if p.Until.IsZero() {
				return cell{Text: "when resumed", Class: "dim"}
			}
			return timeCell(p.Until, "in")
		}},
		{"Waiting", func(p *client.PauseStatus) cell { return numberCell(int64(p.Parked)) }},
		{"By", func(p *client.PauseStatus) cell { return cutCell(p.By) }},
		{"Reason", func(p *client.PauseStatus) cell { return cutCell(p.Reason) }},
		{"Actions", func(p *client.PauseStatus) cell {
			return cell{Asks: []ask{askFor("Resume…", "resume", "scope", p.Scope)}}
		}},
	}, status.Paused, func(p *client.PauseStatus) string { return p.Scope })
	return s
}

// processSection shows this replica. A token that is limited to some workflows does not see it.
func (v *visit) processSection() (doing section, status *client.ReplicaStatus, err error) {
	doing = section{ID: "process", Title: "This replica",
		Fold: "This replica: session, etcd, service and configuration"}
	s, err := v.getReplica()
	if err != nil {
		doing, err = doing.withoutContent(err, "")
		return doing, nil, err
	}
	doing.Facts = factsOf(s)
	return doing, s, nil
}

// replicasSection lists all replicas, with what differs in the configuration of one from that of
// this one.
func (v *visit) replicasSection() (section, error) {
	s := section{ID: "replicas", Title: "Replicas"}
	list, err := readObject[client.ReplicaList](v, "/v1/replicas")
	if err != nil {
		return s.withoutContent(err, "The other replicas are not known: etcd does not answer.")
	}
	s.Count = len(list.Replicas)
	s.Note = "Also those that ended in the last hour. Configurations are compared with that of the replica that " +
		"answers."
	s.Table = tableOf("Replicas", []column[client.Replica]{
		{"Replica", func(r *client.Replica) cell { return cutCell(r.Replica) }},
		{"State", func(r *client.Replica) cell {
			c := cell{Text: r.State, Class: "good"}
			switch {
			case r.State == client.ReplicaGone:
				c.Class = "bad"
			case r.State == client.ReplicaStopped:
				c.Class = "dim"
			case r.NotReady != "":
				c = cell{Text: "not ready: " + r.NotReady, Class: "bad"}
			}
			if r.Self {
				c.Text += ", this one"
			}
			return c
		}},
		{"Up since", func(r *client.Replica) cell { return timeCell(r.StartedAt, "at") }},
		{"Last seen", func(r *client.Replica) cell {
			if r.State == client.ReplicaLive {
				return cell{Text: "now", Class: "dim"}
			}
			return timeCell(r.SeenAt, "ago")
		}},
		{"Version", func(r *client.Replica) cell { return textCell(r.Version) }},
		{"Configuration", func(r *client.Replica) cell {
			c := cell{Text: r.ConfigSHA256[:min(len(r.ConfigSHA256), 12)], Class: "id", Title: r.ConfigFile}
			if len(r.Differs) > 0 {
				differs := "differs in " + strings.Join(r.Differs, ", ")
				return cell{More: []cell{c, {Text: differs, Class: "warn", Title: differs}}}
			}
			return c
		}},
		{"Session", func(r *client.Replica) cell { return cell{Text: r.Session, Class: "id"} }},
	}, list.Replicas, func(r *client.Replica) string { return r.Replica + r.SeenAt.String() })
	s.Table.Lines = true
	return s, nil
}

// factsOf describes a replica.
func factsOf(s *client.ReplicaStatus) []fact {
	crowd := func(n int, since client.Time, more string) []cell {
		if since.IsZero() {
			return []cell{textCell(fmt.Sprint(n) + more)}
		}
		return []cell{textCell(fmt.Sprint(n) + more + ", longest"), timeCell(since, "for")}
	}
	ready := []cell{{Text: "ready", Class: "good"}}
	if s.NotReady != "" {
		ready = []cell{{Text: "not ready: " + s.NotReady, Class: "bad"}}
	}
	session := []cell{{Text: "ok", Class: "good"}}
	if !s.Session.Live {
		session = []cell{{Text: "none: " + s.Session.Reason, Class: "bad"}}
	}
	facts := []fact{
		{"replica", append([]cell{textCell(s.Replica + ", " + s.Version + ", up for"), timeCell(s.StartedAt, "for")},
			ready...)},
		{"session", session},
	}
	for i := range s.Etcd.Members {
		facts = append(facts, fact{"etcd", contactCells(&s.Etcd.Members[i])})
	}
	if s.Etcd.Space != "" {
		facts = append(facts, fact{"etcd space", []cell{textCell(s.Etcd.Space)}})
	}
	facts = append(facts,
		fact{"upstream", append(contactCells(&s.Upstream), reuseCell(&s.UpstreamReuse))},
		fact{"configuration", configCells(&s.Config)},
		fact{"running, this replica", crowd(s.Running.Count, s.Running.OldestAt, "")},
		fact{"waiting, this replica", crowd(s.Waiting.Count, s.Waiting.OldestAt, "")},
		fact{"held, all replicas", crowd(s.Held.Count, s.Held.OldestAt, "")},
		fact{"accepted, waiting, all replicas", crowd(s.Parked.Count, s.Parked.OldestAt,
			fmt.Sprintf(", %d blocked, %s", s.Parked.Blocked,
				story.Count(s.Parked.DeadLetters, "dead letter", "dead letters")))},
	)
	for _, n := range s.Parked.Unrouted {
		facts = append(facts, fact{"no route", []cell{{
			Text: story.Count(n.Count, "accepted event", "accepted events") + " of route " + n.Route +
				", which this replica does not have: they are not tried here", Class: "bad",
		}}})
	}
	return facts
}

// reuseCell says whether connections to the service are reused.
func reuseCell(r *client.UpstreamReuse) cell {
	switch {
	case r.Ended != "":
		return cell{Class: "warn", Text: "; connections are not reused any more: it " + r.Ended}
	case r.Setting == "auto" && r.Known == "" && r.Server != "":
		return textCell(fmt.Sprintf("; connections are not reused: nothing is known of %q", r.Server))
	case r.Reused == 0:
		return cell{}
	}
	return textCell(fmt.Sprintf("; %d requests on reused connections", r.Reused))
}

func contactCells(c *client.Contact) []cell {
	cells := []cell{textCell(c.Address)}
	switch c.State {
	case client.ContactAnswers:
		cells = append(cells, cell{Text: "ok", Class: "good"})
	case client.ContactFails:
		cells = append(cells, cell{Text: "fails,", Class: "bad"}, timeCell(c.FailedAt, "ago"), textCell(": "+c.Failure))
		if !c.AnsweredAt.IsZero() {
			cells = append(cells, textCell("; its last answer came"), timeCell(c.AnsweredAt, "ago"))
		}
	default:
		cells = append(cells, cell{Text: "no request yet", Class: "dim"})
	}
	return cells
}

func configCells(c *client.ConfigStatus) []cell {
	cells := []cell{textCell(c.File + " sha256:" + c.SHA256[:min(len(c.SHA256), 12)] + ", loaded"),
		timeCell(c.LoadedAt, "ago")}
	if r := c.Refused; r != nil {
		class, said := "warn", "; a change was refused"
		if c.Stale {
			class, said = "bad", "; STALE: the changed file was refused"
		}
		cells = append(cells, cell{Text: said, Class: class}, timeCell(r.At, "ago"),
			cell{Text: ": " + strings.Join(r.Problems, "; "), Class: class})
	}
	return append(cells, cell{Asks: []ask{askFor("Reload…", "reload")}})
}

// modeCell shows a mode other than enforce.
func modeCell(name string) cell {
	if name == "enforce" {
		return cell{}
	}
	return textCell(name)
}

// pauseAsk returns the button that pauses a scope, or resumes it if it is paused. status may be
// nil.
func pauseAsk(scope string, status *client.ReplicaStatus) ask {
	what, _, _ := strings.Cut(scope, ":")
	if status != nil && slices.ContainsFunc(status.Paused, func(p client.PauseStatus) bool {
		return p.Scope == scope
	}) {
		return askFor("Resume "+what+"…", "resume", "scope", scope)
	}
	return askFor("Pause "+what+"…", "pause", "scope", scope)
}

// locksSection lists the locks that are held, the oldest first. status may be nil.
func (v *visit) locksSection(status *client.ReplicaStatus) (section, error) {
	s := section{
		ID: "locks", Title: "Busy now",
		Search: &search{"now", []input{{Name: "prefix", Label: "Workflow begins with", Value: v.query.Get("prefix"),
			Main: true}}},
	}
	all, more, err := v.allLocks()
	if isProblem(err, client.CodeStoreUnavailable) {
		s.Trouble = "The locks are not known: etcd does not answer."
		s.Table = liveTable("Locks", lockColumns(), nil, lockKey)
		if status != nil {
			for i := range status.Etcd.Members {
				if m := &status.Etcd.Members[i]; m.State == client.ContactFails {
					s.Facts = append(s.Facts, fact{"etcd", contactCells(m)})
				}
			}
		}
		return s, nil
	}
	if err != nil {
		return s, err
	}
	slices.SortStableFunc(all, func(a, b client.Lock) int { return a.LockedAt.Compare(b.LockedAt.Time) })
	s.Count = len(all)
	s.Table = liveTable("Locks", lockColumns(), all, lockKey)
	s.Empty = "Nothing is running."
	if more {
		s.Table.More = fmt.Sprintf("More than %d: narrow them by the beginning of the workflow.", maxLocks)
	}
	return s, nil
}

// lockKey names a row: a lock that has changed hands is another row.
func lockKey(l *client.Lock) string { return l.ExecutionID + " " + l.Workflow }

// allLocks reads as many locks as a screen shows.
func (v *visit) allLocks() (all []client.Lock, more bool, err error) {
	for cursor := ""; ; {
		page, err := readObject[client.LockPage](v, "/v1/locks", "prefix", v.query.Get("prefix"), "limit",
			fmt.Sprint(lockPage), "cursor", cursor)
		if err != nil {
			return nil, false, err
		}
		all = append(all, page.Locks...)
		if len(all) > maxLocks {
			return all[:maxLocks], true, nil
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, false, nil
		}
		if err := v.api.of.Context().Err(); err != nil {
			return nil, false, errors.Join(err)
		}
	}
}

// lockColumns show a lock.
func lockColumns() []column[client.Lock] {
	return []column[client.Lock]{
		{"Workflow", func(l *client.Lock) cell {
			c := cutCell(l.Workflow)
			c.Href = screenLink("find", "workflow", l.Workflow)
			return c
		}},
		{"Event", func(l *client.Lock) cell {
			c := middleCutCell(l.EventID)
			if l.EventID == "" {
				c = cutCell(l.Holder)
			}
			c.Href = screenLink("story", "id", l.ExecutionID)
			return c
		}},
		{"State", lockState},
		{"Held for", func(l *client.Lock) cell {
			held := cell{More: []cell{timeCell(l.LockedAt, "for")}}
			if l.Parked == nil && !l.Cooling && !l.ExpiresAt.IsZero() {
				held.More = append(held.More, cell{Text: "of " + story.Span(l.ExpiresAt.Sub(l.LockedAt.Time)),
					Title: l.EndsBy}, cell{At: l.ExpiresAt.Time, From: l.LockedAt.Time})
			}
			return held
		}},
		{"Ends", func(l *client.Lock) cell {
			switch {
			case l.Parked != nil && l.Parked.Blocked != "":
				return cell{Text: "needs a decision", Class: "bad"}
			case l.Parked != nil && !l.Parked.NextAttempt.IsZero():
				return cell{More: []cell{{Text: "next try"}, timeCell(l.Parked.NextAttempt, "in")}}
			case l.Parked != nil:
				return cell{Text: "next in line", Class: "dim"}
			case l.ExpiresAt.IsZero():
				return cell{Text: "when the service answers", Class: "dim"}
			}
			return timeCell(l.ExpiresAt, "in")
		}},
		{"Waiting", func(l *client.Lock) cell {
			if l.Waiting == 0 {
				return cell{}
			}
			return cell{Text: fmt.Sprintf("%d waiting", l.Waiting),
				Href: screenLink("find", "workflow", l.Workflow, "status", string(client.Pending))}
		}},
		{"Actions", func(l *client.Lock) cell {
			return cell{Asks: []ask{askFor("Cancel…", "cancel", "id", l.ExecutionID),
				askFor("Release…", "release", "workflow", l.Workflow, "id", l.ExecutionID)}}
		}},
	}
}

func lockState(l *client.Lock) cell {
	c := cell{Text: "running"}
	switch {
	case l.Cooling:
		c = cell{Text: "closed, unknown", Class: "warn", Title: "release_delay keeps the lock closed"}
	case l.Held:
		c = cell{Text: "held", Title: "the service answered and works on, or a client holds the lock"}
	case l.Parked != nil && l.Parked.Blocked != "":
		c = cell{Text: string(client.ParkBlocked), Class: "bad", Title: "its event waits for a decision: " +
			l.Parked.Blocked}
	case l.Parked != nil:
		c = cell{Text: string(client.ParkWaiting), Title: "its event was accepted and waits for its next try"}
	}
	if l.IsStale {
		c.Text, c.Class, c.Title = c.Text+", owner gone", "warn", "free for the next event"
	}
	return c
}
