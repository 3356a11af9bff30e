// Package story says in English what happened to an event and what an operator can do about it. The
// page and the command line show the same text.
package story

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hooklock/admin/client"
	"hooklock/idem"
)

// Story is what is known of one event.
type Story struct {
	*client.Execution
	Lock  *client.Lock           // of its workflow; nil = it is free, or not known
	Rules *client.RouteRules     // of its route; nil = not known
	Now   time.Time              // decides between "until" and "had until"
	Stamp func(time.Time) string // spells a time
}

// Name returns the sender's ID of an event, or the first half of its key.
func Name(x *client.Execution) string {
	if x.EventID != "" {
		return x.EventID
	}
	half, _, _ := strings.Cut(x.IdempotencyKey, "-")
	return half
}

// Labels returns the labels of an event on one line: order=1042 shop=acme.
func Labels(x *client.Execution) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(x.Labels)) {
		all = append(all, name+"="+x.Labels[name])
	}
	return strings.Join(all, " ")
}

// Happened says in one or two sentences what happened.
func (s *Story) Happened() string {
	switch {
	case s.Status == client.Refused:
		return s.refusedText() + s.lostText()
	case s.Status == client.Released && s.Released != nil:
		return Sentence(s.Released.By + " allowed it to run again at " + s.Stamp(s.Released.At.Time) + " (" +
			s.Released.Reason + "); the run before had ended as " +
			Words(string(s.Released.Status)+", "+string(s.Released.Outcome)))
	case s.Status == client.CancelRequested:
		return Sentence(s.AbortedBy + " asked to cancel it at " + s.Stamp(s.AbortedAt.Time) + ": " + s.AbortReason +
			"; it has not ended yet")
	case s.isHeld():
		return "The service has answered and works on since " + s.Stamp(s.StartedAt.Time) +
			": the lock is kept until it reports the end" + s.lockEnd() + "."
	case s.Parked != nil:
		return s.parkedText()
	case s.Status == client.Pending:
		return s.waitsText()
	case s.Status == client.Running:
		return "The service has been working on it since " + s.Stamp(s.StartedAt.Time) + "."
	case s.Status == client.Aborted:
		return s.abortedText()
	}
	return s.endedText() + s.changedText() + s.duplicatesText() + s.storedText() + s.lostText()
}

// isHeld reports whether the service works on after its answer, also to a try of an accepted event.
func (s *Story) isHeld() bool {
	return s.Status == client.Running && s.Lock != nil && s.Lock.Held && s.Lock.ExecutionID == s.ExecutionID
}

// storedText says whether the request is in the request store.
func (s *Story) storedText() string {
	switch s.RequestStored {
	case client.StoredYes:
		return " Its request is in the request store."
	case client.StoredNo:
		return " Its request is not in the request store: it was not written, is too old, or was deleted."
	case client.StoredUnknown:
		return " Whether its request is in the request store is unknown: the store does not answer."
	}
	return ""
}

// changedText says what of the request of the last attempt was not as in the attempt before; "" =
// nothing, or it is not known.
func (s *Story) changedText() string {
	n := len(s.Attempts)
	if n < 2 || len(s.Attempts[n-1].Differs) == 0 {
		return ""
	}
	return fmt.Sprintf(" Attempt %d came with another %s than the one before.", n,
		strings.Join(s.Attempts[n-1].Differs, ", "))
}

// Todo says what an operator can do, and when the sender sends the event again. It is "" if there
// is nothing to do.
func (s *Story) Todo() string {
	switch {
	case s.Status == client.Success:
		return ""
	case s.isLost():
		return Sentence(todoForLost(s.Execution))
	case s.Status == client.Refused:
		row := s.lastArrival().Decision.Row()
		return joinSentences(todoAbout(s.lastArrival()),
			s.againText(row.Class != idem.ClassForged && s.lastArrival().Status > 299))
	case s.Status == client.Released:
		return joinSentences("Resend it at the sender if it does not come again", s.againText(true))
	case s.Parked != nil && s.Parked.Blocked != "":
		return "Repair what made it fail, then run it now; or skip it, so that the next event of its queue runs."
	case s.isBehindBlocked():
		return "Decide about " + s.lockOwner() + ": run it, skip it or cancel it."
	case s.Status == client.CancelRequested:
		return "Wait, or release its lock if it does not end."
	case s.Parked != nil && !s.isHeld():
		return "Nothing: it is tried by itself. Its sender was told that it is accepted."
	case s.Status == client.Pending:
		return "Nothing: it runs when the lock is free. If the running event is stuck, cancel it."
	case !s.Status.Terminal():
		return "Wait, or cancel it if it is stuck."
	case s.wasSettled():
		return joinSentences("An attempt before it succeeded, so its duplicates do not run, and get the status of that",
			s.keptText())
	case s.isExhausted():
		return "It failed as often as its route lets it: repair the service or the event, then allow it again."
	case s.SupersededBy != "":
		return ""
	case s.Final:
		return "Nothing: it never runs again, unless it is allowed again."
	case s.Outcome == client.Unknown:
		return s.unclearText()
	case s.RequestKept:
		return joinSentences("", s.keptText())
	case s.Response != nil && s.Response.Kept:
		return "Its duplicates get this answer. To run it again, allow it again, then resend it at the sender."
	case s.Outcome == client.Executed:
		return joinSentences("Repair the service", s.againText(true))
	}
	return s.againText(true)
}

// wasSettled reports whether an attempt before has settled the event, so that a person has let this
// one run: what becomes of it does not change that.
func (s *Story) wasSettled() bool {
	n := len(s.Attempts)
	return n > 1 && slices.ContainsFunc(s.Attempts[:n-1], func(a client.Attempt) bool {
		return a.Status == client.Success
	})
}

// isExhausted reports whether the event waits for a person, because as many of its attempts failed
// as its route allows. The request of a dead letter is kept: that is said instead.
func (s *Story) isExhausted() bool {
	if s.Rules == nil || s.Rules.Attempts == 0 || s.Status == client.Success || s.Final || s.RequestKept {
		return false
	}
	n := s.Attempt - len(s.Attempts)
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Outcome != client.NotExecuted && a.Status != client.Success {
			n++
		}
	}
	return s.Outcome != client.NotExecuted && n >= s.Rules.Attempts
}

// arrival returns the newest delivery that was not executed.
type arrival struct {
	*client.Arrival
	Decision idem.Decision
}

func (s *Story) lastArrival() arrival {
	if s.Arrivals == nil || len(s.Arrivals.Newest) == 0 {
		return arrival{&client.Arrival{}, ""}
	}
	a := &s.Arrivals.Newest[0]
	return arrival{a, idem.Decision(a.Decision)}
}

func (s *Story) refusedText() string {
	a := s.lastArrival()
	if a.Decision == "" {
		return "It did not run; its deliveries are no longer known."
	}
	text := fmt.Sprintf("It did not run: refused with %d at %s, because %s", a.Status, s.Stamp(a.Answered()),
		Why(a.Arrival, s.Stamp))
	if a.Decision == idem.DecisionUnverified {
		text = strings.Replace(text, "because", "because of", 1)
	}
	if a.Status < 300 {
		text = strings.Replace(text, "refused with", "answered with", 1)
	}
	return text + "."
}

// todoAbout says what an operator can do about a refusal. A service whose certificate is not
// accepted is up.
func todoAbout(a arrival) string {
	if a.Decision == idem.DecisionUpstreamUnreachable && strings.Contains(a.Detail, "TLS handshake") {
		return "The service is up, and TLS with it fails: check its certificate, upstream.url and upstream.tls"
	}
	return a.Decision.Row().Todo
}

// Why says why a delivery was answered as it was, with the event that had the lock.
func Why(a *client.Arrival, stamp func(time.Time) string) string {
	d := idem.Decision(a.Decision)
	if d == idem.DecisionBypassed && a.Would != "" {
		return "it was forwarded; in mode enforce: " + idem.Decision(a.Would).Row().Happened
	}
	b := a.Behind
	if b == nil {
		if a.Detail != "" {
			return d.Row().Happened + ": " + a.Detail
		}
		return d.Row().Happened
	}
	name := cmp.Or(b.EventID, "an event without an ID")
	if b.FinishedAt.IsZero() {
		return d.Row().Happened + ": " + name + " had the lock since " + stamp(b.StartedAt.Time) + " and still has it"
	}
	return d.Row().Happened + ": " + name + " had the lock from " + stamp(b.StartedAt.Time) + " to " +
		stamp(b.FinishedAt.Time) + " (" + Span(b.FinishedAt.Sub(b.StartedAt.Time)) + ")"
}

func (s *Story) parkedText() string {
	p := s.Parked
	tried := "not tried yet"
	if p.Tries > 0 {
		tried = "tried " + Count(p.Tries, "time", "times") + ", " + strconv.Itoa(p.Failures) + " failed"
	}
	text := "It was accepted at " + s.Stamp(p.Since.Time) + " and " + tried
	if last := s.lastTry(); last != "" {
		text += ", the last: " + last
	}
	switch {
	case p.Blocked != "":
		text += ". It " + blocksText(p)
	case !p.NextAttempt.IsZero():
		text += ". The next try is at " + s.Stamp(p.NextAttempt.Time)
	case s.isBehindBlocked():
		text += ". It waits behind " + s.lockOwner() + ", which " + blocksText(s.Lock.Parked)
	case s.Lock != nil && s.Lock.ExecutionID != s.ExecutionID:
		text += ". It waits for its turn: " + s.holderText()
	}
	return text + "."
}

// lastTry returns the result of the latest try of a parked event that failed.
func (s *Story) lastTry() string {
	if n := len(s.FailedAnswers); n > 0 {
		return strconv.Itoa(s.FailedAnswers[n-1].Status) + s.LastFailed()
	}
	if s.Parked == nil || s.Parked.LastEvidence == nil {
		return ""
	}
	e := s.Parked.LastEvidence
	switch {
	case e.Status != 0:
		return strconv.Itoa(e.Status)
	case e.Detail != "":
		return e.Detail
	}
	return Words(string(e.Outcome))
}

func (s *Story) waitsText() string {
	if s.Lock == nil {
		return "It waits for the lock of its workflow since " + s.Stamp(s.StartedAt.Time) + "."
	}
	if s.isBehindBlocked() {
		return "It waits since " + s.Stamp(s.StartedAt.Time) + " behind " + s.lockOwner() + ", which " +
			blocksText(s.Lock.Parked) + "."
	}
	return "It waits for the lock of its workflow since " + s.Stamp(s.StartedAt.Time) + ": " + s.holderText() + "."
}

func blocksText(p *client.Parked) string {
	return "blocks its queue until a person decides (" + Words(p.Blocked) + ")"
}

// isBehindBlocked reports whether the event waits, and what has the lock waits for a person.
func (s *Story) isBehindBlocked() bool {
	l := s.Lock
	return s.Status == client.Pending && l != nil && l.ExecutionID != s.ExecutionID && l.Parked != nil &&
		l.Parked.Blocked != ""
}

// lockOwner returns the event that has the lock of the workflow.
func (s *Story) lockOwner() string { return cmp.Or(s.Lock.EventID, s.Lock.ExecutionID) }

// holderText says which event has the lock.
func (s *Story) holderText() string {
	return cmp.Or(s.Lock.EventID, s.Lock.Holder) + " has had it since " + s.Stamp(s.Lock.LockedAt.Time) + ", " +
		Count(s.Lock.Waiting, "event waits", "events wait")
}

func (s *Story) lockEnd() string {
	if s.Lock.ExpiresAt.IsZero() {
		return ""
	}
	return ", at the latest until " + s.Stamp(s.Lock.ExpiresAt.Time)
}

func (s *Story) abortedText() string {
	if s.SupersededBy != "" {
		return "It did not run: a newer event of its scope replaced it at " + s.Stamp(s.FinishedAt.Time) + "."
	}
	text := cmp.Or(s.AbortedBy, "Hooklock") + " cancelled it at " + s.Stamp(s.AbortedAt.Time)
	if s.AbortReason != "" {
		text += ": " + s.AbortReason
	}
	return Sentence(text) + " " + s.effectText()
}

// effectText says whether a cancelled event ran.
func (s *Story) effectText() string {
	switch s.Outcome {
	case client.Executed:
		return "The service had answered."
	case client.NotExecuted:
		return "Nothing had been sent to the service."
	}
	return "The outcome is unknown: it had begun, and how far it came is not known."
}

// endedText says how a run ended that was not cancelled.
func (s *Story) endedText() string {
	at := " at " + s.Stamp(s.FinishedAt.Time)
	if !s.StartedAt.IsZero() {
		at += " after " + Span(s.FinishedAt.Sub(s.StartedAt.Time))
	}
	if s.Tries > 1 {
		at += " and " + Count(s.Tries, "try", "tries")
	}
	detail := ""
	if s.Error != nil {
		detail = Words(s.Error.Code)
		if s.Error.Detail != "" {
			detail = s.Error.Detail
		}
		detail += s.LastFailed()
	}
	switch {
	case s.Asked != nil:
		return Sentence("The outcome was unknown"+at) + " The service was asked what became of it at " +
			s.Stamp(s.Asked.At.Time) + ": " + s.Asked.Text() + "."
	case s.Outcome == client.NotExecuted:
		return Sentence("Nothing was sent to the service: " + detail + at)
	case s.Outcome == client.Unknown && s.Error != nil && strings.HasPrefix(s.Error.Code, "upstream_"):
		return Sentence("The outcome is unknown" + at + ": the request was sent, and no whole answer came (" + detail +
			")")
	case s.Outcome == client.Unknown:
		return Sentence("The outcome is unknown" + at + ": " + cmp.Or(detail, "how far it came is not known"))
	case s.Response != nil:
		answered := Sentence("The service answered " + strconv.Itoa(s.Response.Status) + at + s.LastFailed())
		if !s.ProvenAt.IsZero() {
			answered += " Its process died, or stood still, before etcd had that; what it knew was recorded at " +
				s.Stamp(s.ProvenAt.Time) + "."
		}
		return answered
	}
	return Sentence("The service answered" + at + s.LastFailed())
}

func (s *Story) duplicatesText() string {
	if s.Duplicates == 0 {
		return ""
	}
	return " " + Count(s.Duplicates, "duplicate", "duplicates") + " answered without running it again."
}

// unclearText says what to do about an unknown outcome. An event that runs again by itself need not
// be allowed.
func (s *Story) unclearText() string {
	const check = "Check the service for this event"
	switch {
	case s.Rules == nil || s.Rules.OnUnknown != string(idem.UnknownRetry):
		return joinSentences(check+", then allow it again if it took no effect", s.keptText())
	case s.RequestKept:
		return check + ", then rerun it if it took no effect: its request is kept. Its next delivery runs it again, " +
			"too."
	}
	return joinSentences(check+": its next delivery runs it again", s.againText(true))
}

// keptText says that the request is stored and can be sent again.
func (s *Story) keptText() string {
	if !s.RequestKept {
		return ""
	}
	return "Its request is kept: rerun it when the service is ready, or allow it again."
}

// againText says until when the sender sends the event again, as far as is known.
func (s *Story) againText(refused bool) string {
	switch {
	case !refused:
		return ""
	case s.ParkedOn != "" && s.ParkedOn != string(idem.ParkAgain):
		return "Its sender does not send it again: it was told that the event is accepted. Resend it there."
	}
	if s.Rules == nil || s.Rules.Sender == nil || s.Rules.Sender.RetriesFor == 0 {
		return "Whether its sender sends it again depends on the sender."
	}
	first := s.StartedAt.Time
	if s.Arrivals != nil && (first.IsZero() || s.Arrivals.First.At.Before(first)) {
		first = s.Arrivals.First.At.Time
	}
	until := first.Add(time.Duration(s.Rules.Sender.RetriesFor * float64(time.Second)))
	name := Sentence(s.Rules.Sender.Preset)
	name = name[:len(name)-1]
	if until.Before(s.Now) {
		return name + " sent it again until " + s.Stamp(until) + " at most: resend it there."
	}
	return name + " sends it again by itself, until " + s.Stamp(until) + " at the latest."
}

// joinSentences joins sentences.
func joinSentences(parts ...string) string {
	var all []string
	for _, p := range parts {
		if p != "" {
			all = append(all, Sentence(p))
		}
	}
	return strings.Join(all, " ")
}

// Sentence returns text with a capital at its beginning and a full stop at its end.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if text == "" {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// Words returns a name of the API in words.
func Words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// Count formats a number of things.
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}

// Estimate returns how long something took by an estimate in seconds, as page and commands show it:
// in milliseconds, and above a second in tenths of one. What took any time took 1 ms at least.
func Estimate(seconds float64) time.Duration {
	d := time.Duration(max(0, min(seconds, 1e9)) * float64(time.Second))
	if d < time.Second {
		return max(d.Round(time.Millisecond), time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// Span formats a duration for readers.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second), " 0 s")
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute), " 0 min")
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// isLost reports whether an event is possibly lost: it was refused and did not come again in time.
func (s *Story) isLost() bool { return !s.LostAt.IsZero() }

// lostText says that the sender has not sent a refused event again.
func (s *Story) lostText() string {
	if !s.isLost() {
		return ""
	}
	return " It did not come again until " + s.Stamp(s.LostAt.Time) + ": it is possibly lost."
}

// SetForLost says what to set so that no event is lost because its sender does not repeat what is
// refused with that decision.
func SetForLost(d idem.Decision) string {
	const respond = "answer what the sender repeats (respond: 503)"
	switch d {
	case idem.DecisionUpstreamUnreachable:
		return "park with unreachable in on, or " + respond
	case idem.DecisionStoreUnavailable:
		return respond + ", and run etcd with three members"
	case idem.DecisionThrottled:
		return "raise new_per_second, or " + respond
	case idem.DecisionPaused:
		return "park what comes during a pause (park), or " + respond
	case idem.DecisionInFlight:
		return "attach duplicates (in_flight: attach), park (park), or " + respond
	}
	return "let deliveries wait (lock.strategy: wait), park them (park), or " + respond
}

// todoForLost says what to do about a lost event, and about further ones.
func todoForLost(x *client.Execution) string {
	text := "Resend it at the sender, or run it at the service"
	if x.Arrivals == nil || len(x.Arrivals.Newest) == 0 {
		return text
	}
	return text + "; so that no other is lost: " + SetForLost(idem.Decision(x.Arrivals.Newest[0].Decision))
}
