package notify

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

const (
	// lookEvery is the time between two looks at what needs attention.
	lookEvery = 10 * time.Second
	// firstPause is after the first message that a receiver did not take. Each further pause is
	// twice as long, up to longestPause.
	firstPause, longestPause = 30 * time.Second, 15 * time.Minute
	// askTime bounds a read or a write of what was told.
	askTime = 5 * time.Second
)

// ErrNoReceiver says that no receiver is configured.
var ErrNoReceiver = errors.New("no receiver is configured: set notify.url_file")

// Ledger keeps what was told; *etcdlock.Control implements it. Its methods return
// idem.ErrStoreUnavailable.
type Ledger interface {
	// Notices returns what was told, and by which process.
	Notices(ctx context.Context) (idem.Notices, error)
	// StoreNotices makes this process the one that tells, unless something was written since that
	// revision. kept is the revision at which it was written; 0: another process was faster. With
	// an error it may be written or not.
	StoreNotices(ctx context.Context, says json.RawMessage, since int64) (kept int64, err error)
}

// Settings say which receiver is told, and how often.
type Settings struct {
	URL    string        // of the receiver; "" = none is told
	Every  time.Duration // how often what lasts is told again; 0 = never
	Routes []string      // whose items are told; nil = those of all routes
}

// Options are what a Notifier works with.
type Options struct {
	Ledger Ledger
	// Attention returns the list of what needs attention. It is called by the replica that tells
	// alone.
	Attention func(context.Context) client.Attention
	Replica   string // the name of this replica, for messages
	Log       *slog.Logger
	// Told is called after each message that was to be sent: taken or not. nil: it is not counted.
	Told func(taken bool)
	Now  func() time.Time // nil means time.Now
}

// Notifier tells people what needs attention. One replica does, whose process is named in the
// ledger, until its session ends.
//
// What is to be told is written before it is sent, and taken back if the receiver did not take it:
// a process that dies between the two has told it, so that nothing is told twice. What lasts is
// told again with Settings.Every. Nothing waits in memory: what a receiver did not take is what is
// still wrong at the next look.
type Notifier struct {
	options  Options
	client   *http.Client
	settings atomic.Pointer[Settings]

	// The fields below are for the goroutine of Run.

	gone map[string]time.Time
	// tells: the last time that the ledger could be read, this process was the one that tells.
	tells bool
	// undo is what had been told before a write that was not followed by a message that was taken.
	undo *undone
	// apart is what was told of etcd while it took no writes.
	apart []notice
	// failures are the messages in a row that the receiver did not take, paused is until when none
	// is sent.
	failures int
	paused   time.Time
}

// undone is what had been told before the n-th write.
type undone struct {
	number  int64
	notices []notice
}

// New returns a Notifier. It sends nothing before SetSettings.
func New(o *Options) *Notifier {
	n := &Notifier{options: *o, client: newClient(), gone: map[string]time.Time{}}
	if n.options.Now == nil {
		n.options.Now = time.Now
	}
	n.settings.Store(&Settings{})
	return n
}

// SetSettings replaces the settings. It may be called at any time.
func (n *Notifier) SetSettings(s Settings) { n.settings.Store(&s) }

// Test sends one message that says that it is a test. It returns ErrNoReceiver, or why it was not
// taken.
func (n *Notifier) Test(ctx context.Context) (Answer, error) {
	to := n.settings.Load().URL
	if to == "" {
		return Answer{}, ErrNoReceiver
	}
	return postMessage(ctx, n.client, to, "Hooklock at "+cleanText(n.options.Replica, "", mostKept)+
		": this is a test. What needs attention will be told here.")
}

// Run tells, until ctx ends. It ends after the message that it is sending.
func (n *Notifier) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			n.lookOnce(context.WithoutCancel(ctx))
		case <-ctx.Done():
			return
		}
	}
}

// lookOnce compares what needs attention with what was told, and sends the difference.
func (n *Notifier) lookOnce(ctx context.Context) {
	set, now := n.settings.Load(), n.options.Now()
	if set.URL == "" {
		n.failures, n.paused = 0, time.Time{}
		return
	}
	if now.Before(n.paused) {
		return
	}
	kept, err := n.readNotices(ctx)
	if err != nil {
		n.tellApart(ctx, set, now)
		return
	}
	n.tells = kept.Self
	if kept.Alive && !kept.Self {
		if len(n.apart) > 0 { // told before the other one took over
			n.tellApart(ctx, set, now)
		}
		clear(n.gone)
		return
	}
	n.tellChanges(ctx, set, now, &kept)
}

func (n *Notifier) readNotices(ctx context.Context) (idem.Notices, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return n.options.Ledger.Notices(ctx)
}

func (n *Notifier) storeState(ctx context.Context, s *state, since int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	says, err := json.Marshal(s)
	if err != nil {
		return 0, err // of texts, numbers and times: it does not happen
	}
	return n.options.Ledger.StoreNotices(ctx, says, since)
}

// tellChanges sends what has changed since what is kept, as the process that tells.
func (n *Notifier) tellChanges(ctx context.Context, set *Settings, now time.Time, kept *idem.Notices) {
	var was state
	_ = json.Unmarshal(kept.Says, &was) // of a newer release: it is told again
	base := was.Told
	if n.undo != nil && kept.Self && n.undo.number == was.Writes {
		base = n.undo.notices
	}
	list := n.options.Attention(ctx)
	p := n.newPlanner(set, now)
	plan := p.makePlan(&list, slices.Concat(base, n.apart))
	if len(plan.lines) == 0 && kept.Self && slices.Equal(plan.next, was.Told) {
		return
	}
	next := state{Writes: was.Writes + 1, Told: plan.next}
	revision, err := n.storeState(ctx, &next, kept.Revision)
	switch {
	case err != nil: // it may be kept, though it is not told
		n.undo = &undone{next.Writes, base}
		n.tellApart(ctx, set, now)
		return
	case revision == 0:
		return
	}
	n.tells, n.undo = true, nil
	if len(plan.lines) == 0 || n.sendMessage(ctx, set, now, &plan) {
		n.apart = nil
		return
	}
	n.undo = &undone{next.Writes, base}
	if revision, err = n.storeState(ctx, &state{Writes: next.Writes + 1, Told: base}, revision); err == nil &&
		revision != 0 {
		n.undo = nil
	}
}

// tellApart tells what is wrong with etcd itself while it cannot be read or takes no writes, if
// this process was the one that tells. What it has told so is in its memory alone.
func (n *Notifier) tellApart(ctx context.Context, set *Settings, now time.Time) {
	if !n.tells && len(n.apart) == 0 {
		return
	}
	list := n.options.Attention(ctx)
	list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(i client.AttentionItem) bool {
		isTold := slices.ContainsFunc(n.apart, func(t notice) bool { return t.Item == hashOf(i.ID) })
		return i.Kind != client.AttentionEtcdDown && i.Kind != client.AttentionEtcdFull || !n.tells && !isTold
	})
	p := n.newPlanner(set, now)
	plan := p.makePlan(&list, n.apart)
	if len(plan.lines) == 0 || n.sendMessage(ctx, set, now, &plan) {
		n.apart = plan.next
	}
}

func (n *Notifier) newPlanner(set *Settings, now time.Time) *planner {
	return &planner{now: now.UTC().Truncate(time.Second), every: set.Every, routes: set.Routes, gone: n.gone}
}

// sendMessage sends a message, and reports whether the receiver took it. Of failures in a row the
// first is logged.
func (n *Notifier) sendMessage(ctx context.Context, set *Settings, now time.Time, p *plan) (taken bool) {
	_, err := postMessage(ctx, n.client, set.URL, p.messageText(n.options.Replica))
	if n.options.Told != nil {
		n.options.Told(err == nil)
	}
	if err == nil {
		if n.failures > 0 {
			n.options.Log.Info("notify.recovered", "failures", n.failures)
		}
		n.failures, n.paused = 0, time.Time{}
		return true
	}
	pause := min(firstPause<<min(n.failures, 10), longestPause)
	if n.failures++; n.failures == 1 {
		n.options.Log.Warn("notify.failed", "error", err.Error(), "advice",
			"the receiver of notify.url_file took no message; it is tried again, with pauses of up to "+
				idem.DurationText(longestPause)+
				", and not logged until it takes one: hooklock notify test says what it answers")
	}
	n.paused = now.Add(pause)
	return false
}
