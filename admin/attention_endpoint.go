package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hooklock/admin/attention"
	"hooklock/admin/client"
	"hooklock/idem"
)

const (
	// attentionFresh is for how long a list of what needs attention is used again: many screens ask
	// for it.
	attentionFresh = 3 * time.Second
	// spaceFresh is that of how full etcd is: each question opens a connection to each member.
	spaceFresh = 30 * time.Second
	// mostOfKind bounds the executions of one kind that are read; more are counted as "at least".
	mostOfKind = 2000
	// attentionTime bounds the reads of one list.
	attentionTime = 10 * time.Second
	// mostLocks bounds the locks that are looked at for long queues, mostQueues the queues.
	mostLocks, mostQueues = 2000, 20
	// recently is how far reused event IDs and lost events are looked for: they may never be
	// resolved.
	recently = 24 * time.Hour
)

// attentionCache keeps the list for all tokens that see everything.
type attentionCache struct {
	making  sync.Mutex // held while a list is made, so that one is made at a time
	space   []idem.StoreSpace
	spaceAt time.Time

	mu      sync.Mutex
	list    *client.Attention
	at      time.Time
	changes int
}

// forgetList forgets the list, because something was changed.
func (a *attentionCache) forgetList() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = nil
	a.changes++
}

// get returns the list, if it is fresh, and how often it was dropped.
func (a *attentionCache) get(now time.Time) (*client.Attention, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.at).Abs() >= attentionFresh {
		return nil, a.changes
	}
	return a.list, a.changes
}

// put keeps a list that was begun after so many drops.
func (a *attentionCache) put(list *client.Attention, at time.Time, changes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changes == changes {
		a.list, a.at = list, at
	}
}

// getAttention returns what needs a person now. A token that is limited to some workflows gets its
// executions alone.
func (c *call) getAttention() error {
	var list client.Attention
	if c.caller.isLimited() {
		list = c.listAttention(c.r.Context())
	} else {
		list = *c.sharedAttention(c.r.Context())
	}
	if !c.caller.token.Bodies {
		list.Items = slices.Clone(list.Items)
		for i := range list.Items {
			list.Items[i].Said = ""
		}
	}
	return c.respond(http.StatusOK, list)
}

// Attention returns what needs a person now, for this process itself. It leaves the list that
// people get as it is: theirs is not older because of this one.
func (a *API) Attention(ctx context.Context) client.Attention {
	c := &call{api: a, endpoint: &endpoint{}}
	return c.listAttention(ctx)
}

// sharedAttention returns the list of all workflows, which may be some seconds old.
func (c *call) sharedAttention(ctx context.Context) *client.Attention {
	cache := &c.api.attention
	if list, _ := cache.get(c.api.options.Now()); list != nil {
		return list
	}
	cache.making.Lock()
	defer cache.making.Unlock()
	now := c.api.options.Now()
	list, changes := cache.get(now)
	if list == nil {
		made := c.listAttention(context.WithoutCancel(ctx)) // others may wait for it
		list = &made
		cache.put(list, now, changes)
	}
	return list
}

// listAttention reads what the list is made of, and makes it. What cannot be read is named in it.
func (c *call) listAttention(ctx context.Context) client.Attention {
	ctx, cancel := context.WithTimeout(ctx, attentionTime)
	defer cancel()
	l := &attentionReader{call: c, ctx: ctx, in: attention.Input{Now: c.api.options.Now()}}
	if !c.caller.isLimited() {
		l.readProcess()
	}
	for _, part := range []struct {
		what string
		read func() error
	}{
		{"what was looked at", l.readMarks}, {"replicas", l.readReplicas}, {"counts", l.readCounts},
		{"executions", l.readFound}, {"queues", l.readQueues},
	} {
		err := part.read()
		if err == nil {
			continue
		}
		l.in.NotKnown = append(l.in.NotKnown, part.what+": "+c.problemOf(err).Detail)
		if errors.Is(err, idem.ErrStoreUnavailable) || ctx.Err() != nil { // each further read would wait as long
			break
		}
	}
	items := attention.List(&l.in)
	if items == nil {
		items = []client.AttentionItem{}
	}
	return client.Attention{
		At: client.Time{Time: l.in.Now}, Items: items, LookedAt: len(l.in.Acknowledgements), NotKnown: l.in.NotKnown,
		Limited: c.caller.isLimited(),
	}
}

// attentionReader reads what the list is made of.
type attentionReader struct {
	*call
	ctx   context.Context
	in    attention.Input
	marks []idem.Acknowledgement
}

// readProcess reads the state of this process, and how full etcd is.
func (l *attentionReader) readProcess() {
	l.in.Status, l.in.Rules = l.api.options.Process.Status(), l.api.options.Process.Routes()
	cache := &l.api.attention // whose caller holds making
	if cache.spaceAt.IsZero() || l.in.Now.Sub(cache.spaceAt).Abs() >= spaceFresh {
		cache.space, cache.spaceAt = l.api.options.Ledger.Space(l.ctx), l.in.Now
	}
	l.in.Space = cache.space
}

// readContext returns the context of one read.
func (l *attentionReader) readContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(l.ctx, l.api.options.RequestTimeout)
}

func (l *attentionReader) readMarks() (err error) {
	if l.caller.isLimited() { // nothing is hidden from it
		return nil
	}
	ctx, done := l.readContext()
	defer done()
	l.marks, err = l.api.options.Ledger.Acknowledgements(ctx)
	for i := range l.marks {
		l.in.Acknowledgements = append(l.in.Acknowledgements, viewOfMark(&l.marks[i]))
	}
	return err
}

func (l *attentionReader) readReplicas() error {
	if l.caller.isLimited() {
		return nil
	}
	ctx, done := l.readContext()
	defer done()
	notes, err := l.api.options.Ledger.Replicas(ctx)
	l.in.Replicas = attention.ReadReplicas(notes)
	return err
}

func (l *attentionReader) readCounts() error {
	if l.caller.isLimited() {
		return nil
	}
	for _, of := range []struct {
		since, step time.Duration
		into        *client.CountList
	}{{countsSince, 15 * time.Minute, &l.in.Day}, {attention.LatelyTime, time.Minute, &l.in.Lately}} {
		ctx, done := l.readContext()
		h, err := l.api.options.Ledger.Counts(ctx, idem.CountQuery{Since: l.in.Now.Add(-of.since), Step: of.step})
		done()
		if err != nil {
			return err
		}
		for i := range h.Routes {
			of.into.Routes = append(of.into.Routes, viewOfCounts(&h.Routes[i]))
		}
	}
	return nil
}

// readFound reads the executions of each kind, without what was looked at.
func (l *attentionReader) readFound() error {
	since := l.in.Now.Add(-recently)
	for _, of := range []struct {
		kind  idem.ConcernKind
		state idem.ParkState // "" = of all executions
		q     idem.ExecutionQuery
	}{
		{idem.ConcernDeadLetters, idem.ParkDeadLetter, idem.ExecutionQuery{}},
		{idem.ConcernBlocked, idem.ParkBlocked, idem.ExecutionQuery{}},
		{idem.ConcernUnknown, "", idem.ExecutionQuery{Outcome: idem.Unknown, Status: idem.Failed}},
		{idem.ConcernExhausted, "", idem.ExecutionQuery{Decision: idem.DecisionExhausted, Status: idem.Failed,
			Since: since}},
		{idem.ConcernReused, "", idem.ExecutionQuery{Decision: idem.DecisionMismatch, Since: since}},
		{idem.ConcernLost, "", idem.ExecutionQuery{Lost: true, Since: since}},
	} {
		of.q.Acknowledged, of.q.PageSize = map[string]idem.Acknowledgement{}, maxLimit
		for _, m := range l.marks {
			if m.Kind == of.kind {
				of.q.Acknowledged[m.Route] = m
			}
		}
		found, err := l.readKind(of.q, of.state)
		found.Kind = string(of.kind)
		l.in.Found = append(l.in.Found, found)
		if err != nil {
			return err
		}
	}
	return nil
}

// readKind reads the executions of one kind, at most mostOfKind of them.
func (l *attentionReader) readKind(q idem.ExecutionQuery, state idem.ParkState) (found attention.Found, err error) {
	for {
		ctx, done := l.readContext()
		var page idem.ExecutionPage
		if state == "" {
			page, err = l.api.options.Ledger.Executions(ctx, q)
		} else {
			page, err = l.api.options.Ledger.ParkedExecutions(ctx,
				idem.ParkedQuery{State: state, Matches: q.Matches, PageSize: q.PageSize, Cursor: q.Cursor})
		}
		done()
		if err != nil {
			return found, err
		}
		for i := range page.Executions {
			f := &page.Executions[i]
			if !l.caller.maySee(f.Workflow()) {
				continue
			}
			v := viewOfExecution(f)
			showFailedAnswers(&v, f)
			found.Executions = append(found.Executions, attention.Attended{Execution: v, At: f.ConcernedAt(&q)})
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return found, nil
		}
		if late := time.Since(l.in.Now) > attentionTime/2; late || len(found.Executions) >= mostOfKind {
			found.More = true
			return found, nil
		}
	}
}

// readQueues finds the locks behind which an event has waited for long.
func (l *attentionReader) readQueues() error {
	q := idem.LockQuery{PageSize: maxLimit}
	for read := 0; read < mostLocks; {
		ctx, done := l.readContext()
		page, err := l.api.options.Ledger.Locks(ctx, q)
		done()
		if err != nil {
			return err
		}
		for i := range page.Locks {
			view := &page.Locks[i]
			workflow := view.Lock.Scope.Workflow
			old := l.in.Now.Sub(view.Lock.StartedAt) >= attention.LongQueue
			if view.Waiting == 0 || !old || strings.Contains(workflow, "*") || !l.caller.maySee(workflow) ||
				len(l.in.Queues) >= mostQueues {
				continue
			}
			since, err := l.oldestBehind(workflow)
			if err != nil {
				return err
			}
			if !since.IsZero() && l.in.Now.Sub(since) >= attention.LongQueue {
				l.in.Queues = append(l.in.Queues, attention.Queue{Lock: l.viewOfLock(view), Since: since})
			}
		}
		read += len(page.Locks)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
	return nil
}

// oldestBehind returns since when the first event waits for the lock of a workflow; zero: none does
// any more.
func (l *attentionReader) oldestBehind(workflow string) (since time.Time, err error) {
	ctx, done := l.readContext()
	defer done()
	page, err := l.api.options.Ledger.Executions(ctx,
		idem.ExecutionQuery{Workflow: workflow, Status: idem.Pending, PageSize: maxLimit})
	if err != nil {
		return since, err
	}
	for i := range page.Executions {
		e := page.Executions[i].Facts()
		if e == nil {
			continue
		}
		began := e.StartedAt
		if lock := page.Executions[i].Lock; lock != nil && lock.Parked != nil {
			began = lock.Parked.Since
		}
		if since.IsZero() || began.Before(since) {
			since = began
		}
	}
	return since, nil
}

// listReplicas lists the replicas.
func (c *call) listReplicas() error {
	ctx, done := c.readContext()
	defer done()
	notes, err := c.api.options.Ledger.Replicas(ctx)
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, client.ReplicaList{Replicas: attention.Views(attention.ReadReplicas(notes))})
}
