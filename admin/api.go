package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/page"
	"hooklock/idem"
)

// Options are what the API works with.
type Options struct {
	// Ready says why deliveries should not come here now, or nil.
	Ready func() error
	// Stale says for operators that the configuration as it was last written is not in force, and
	// since when; "" = it is. /readyz?verbose shows it. nil: it is never stale.
	Stale func() string
	// Space says for operators how full etcd is, in one line; "" = that is not known.
	// /readyz?verbose shows it. nil: it never is.
	Space func(context.Context) string
	// Metrics serves /metrics.
	Metrics http.Handler

	// The fields below are for New alone.

	Ledger Ledger
	Access Access
	// Report returns the problems that the routes have found since then; the zero time means
	// everything that is known.
	Report func(since time.Time) client.Report
	// Suggest returns the routes that fit the deliveries since then; the zero time means all that
	// are known.
	Suggest func(since time.Time) client.SuggestionList
	// Process is the process around the API: its status, routes and configuration.
	Process Process
	// Backup returns a copy of the embedded etcd, which ends with the context; nil if there is
	// none.
	Backup func(context.Context) (io.ReadCloser, error)
	// Request decodes the request of an execution from what the ledger keeps of it. nil if no
	// requests are kept.
	Request func(ctx context.Context, id idem.ExecutionID, kept []byte) (head, body []byte, err error)
	// Archive has the requests that routes keep (requests.keep); nil: there is no store for them.
	Archive Archive
	// Profiling serves /debug/pprof, to tokens with scope write.
	Profiling bool
	// UpstreamTimeout is how long the upstream may take for its answer, which bounds a running
	// lock. Zero: it is not known.
	UpstreamTimeout time.Duration
	// RequestTimeout bounds each question to the ledger; a list may take a few of them. Zero means
	// 2 s.
	RequestTimeout time.Duration
	Log            *slog.Logger // nil drops all lines
	// Audit reserves room for the line of a change, which is then written whatever happens to the
	// log meanwhile; release gives it back if there was none. Its error says why no line can be
	// written: the change is not made then. nil means that Log takes them all, whatever its level.
	Audit func() (line *slog.Logger, release func(), err error)
	Now   func() time.Time // nil means time.Now
}

// API is the handler of the admin listener: everything under /v1, /openapi.json, the page at /, and
// what Health serves.
type API struct {
	options Options
	table   []endpoint
	page    *page.Page
	health  http.Handler
	access  atomic.Pointer[Access]
	busy    places
	polls   *shares
	// callbacks are apart from busy: clients that make up keys take no place of those that have a
	// token.
	callbacks places
	// The Go runtime records one profile of each kind at a time.
	profiling, tracing places

	failed failures

	attention attentionCache

	jobs *jobRunner

	// life is the context of requests that wait. Close ends it.
	life context.Context
	end  context.CancelFunc
}

// New makes the API. It starts no goroutine; RunJobs runs the jobs.
func New(o Options) *API {
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 2*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Audit == nil {
		o.Audit = func() (*slog.Logger, func(), error) { return o.Log, func() {}, nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &API{options: o, table: allEndpoints(), health: Health(o), failed: failures{now: o.Now}}
	a.busy, a.polls, a.callbacks = make(places, maxBusy), newShares(maxPolls, maxPollsEach), make(places, maxCallbacks)
	a.profiling, a.tracing = make(places, 1), make(places, 1)
	a.jobs = newJobRunner(a)
	a.life, a.end = context.WithCancel(context.Background())
	a.page = page.New(page.Options{API: a, Life: a.life})
	a.SetAccess(o.Access)
	return a
}

// SetAccess replaces the rules of access; requests that are under way keep the old ones.
func (a *API) SetAccess(access Access) { a.access.Store(&access) }

// Close ends the requests that wait: a server that shuts down would wait for them.
func (a *API) Close() { a.end() }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer a.recoverFromPanic(w)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !hostAllowed(r.Host, a.access.Load().Hosts) {
		refuse("host_refused",
			"ask for this listener by its IP address, as localhost, or by a name in admin.hosts").write(w)
		return
	}
	if crossSite(r) && !isVisit(r) {
		w.Header().Set("Cache-Control", "no-store")
		refuse("cross_site", "a browser says that a page from elsewhere asks (Origin or Sec-Fetch-Site); use a "+
			"client that is no browser, or the address of this listener itself").write(w)
		return
	}
	switch r.URL.EscapedPath() {
	case "/livez", "/readyz", "/metrics":
		a.health.ServeHTTP(w, r)
	case "/openapi.json":
		serveOpenAPI(w, r)
	default:
		if page.Has(r.URL.Path) {
			a.page.ServeHTTP(w, r)
			return
		}
		if name, ok := strings.CutPrefix(r.URL.Path, profilePath); ok && a.options.Profiling {
			a.serveProfile(w, r, name)
			return
		}
		a.serveEndpoint(w, r)
	}
}

// recoverFromPanic recovers from a bug in one request. net/http would log the whole request's stack
// and cut the connection.
func (a *API) recoverFromPanic(w http.ResponseWriter) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	a.options.Log.Error("panic", "error", fmt.Sprint(p), "stack", string(debug.Stack()))
	refuse("internal_error", "a bug in Hooklock; its log has more").write(w)
}

// serveEndpoint answers requests below /v1.
func (a *API) serveEndpoint(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	e, name, p := findEndpoint(a.table, r.Method, r.URL.EscapedPath())
	if p != nil {
		p.write(w)
		return
	}
	inside := a.busy
	if e.access == forCallback { // a wrong key is only known when the ledger has looked
		inside = a.callbacks
	}
	if !inside.tryEnter() {
		refuse("overloaded", "too many requests are under way").write(w)
		return
	}
	defer inside.leave()
	c := &call{api: a, endpoint: e, name: name, w: w, r: r}
	c.run()
}

// call is one request on its way through the API.
type call struct {
	api      *API
	endpoint *endpoint
	name     string // the workflow or the execution ID in the path
	caller   caller
	w        http.ResponseWriter
	r        *http.Request
	query    func(name string) string
	audit    entry
	only     idem.Status  // of a job of cancels: what has another status is left alone; "" = nothing is
	again    bool         // of a rerun: also of events that were settled
	line     *slog.Logger // for the audit line; nil until room is reserved for it
	answer   func()       // writes the answer, after the audit line; nil = it was written, or there is none
}

// run admits the caller, runs the endpoint, and writes the audit line of a change.
func (c *call) run() {
	err := c.admitCaller()
	c.beginAudit()
	if err == nil && (c.endpoint.access == forWrite || c.endpoint.access == forBodies) {
		release, p := c.reserveAuditLine()
		if p != nil {
			err = p
		} else {
			defer release()
		}
	}
	if err == nil && c.endpoint.whole != "" {
		err = c.refuseLimited(c.endpoint.whole)
	}
	if err == nil {
		err = c.endpoint.do(c)
	}
	if c.endpoint.access == forWrite {
		c.api.attention.forgetList()
	}
	var p *problem
	if err != nil {
		p = c.problemOf(err)
		c.countFailure(p)
	}
	if c.endpoint.change != "" && !c.audit.quiet && !c.leavesOutAudit(p) {
		c.endAudit(p)
	}
	switch {
	case p != nil:
		p.write(c.w)
	case c.answer != nil:
		c.answer()
	case c.audit.broken: // the client must not take a part of the answer for the whole
		panic(http.ErrAbortHandler)
	}
}

// admitCaller decides whether the caller may use this endpoint at all.
func (c *call) admitCaller() error {
	tooMany := c.api.failed.tooMany
	if c.r.Header.Get("Authorization") != "" &&
		(tooMany(c.guesserName()) || c.endpoint.access == forCallback && tooMany(c.strangerName())) {
		return refuse("rate_limited", "too many requests from your address had a wrong token or key, or named "+
			"nothing that exists")
	}
	var p *problem
	if c.caller, p = c.api.access.Load().admitCaller(c.endpoint, c.r); p != nil {
		return p
	}
	values, p := c.endpoint.readQuery(c.r)
	if p != nil {
		return p
	}
	c.query = values.Get
	if c.r.Method != http.MethodPost && (c.r.ContentLength != 0 || len(c.r.TransferEncoding) > 0) {
		return refuse("bad_request", c.r.Method+" takes no body here: its arguments are in the query")
	}
	return nil
}

// guesserName names a client that may be trying out secrets: an address, and for callbacks also the
// execution, because one outdated worker of an upstream must not lock out its other executions.
func (c *call) guesserName() string {
	if c.endpoint.access == forCallback {
		id := idem.ExecutionID(c.name)
		if _, _, err := id.Parse(); err != nil { // made-up names must not fill the memory
			id = ""
		}
		return "callback " + string(id) + " " + networkOf(c.r.RemoteAddr)
	}
	return "token " + networkOf(c.r.RemoteAddr)
}

// strangerName names a client without a known token that makes the ledger search for executions
// that do not exist.
func (c *call) strangerName() string { return "stranger " + networkOf(c.r.RemoteAddr) }

// countFailure counts a failure that may be an attempt to guess.
func (c *call) countFailure(p *problem) {
	switch {
	case c.r.Header.Get("Authorization") == "":
	case p.Code == "unauthorized":
		c.api.failed.addFailure(c.guesserName(), guessCost)
	case c.endpoint.access == forCallback && p.Code == "execution_not_found":
		c.api.failed.addFailure(c.strangerName(), searchCost)
	}
}

// leavesOutAudit reports whether the audit line of a refusal is left out, because clients without a
// token could fill the log with it.
func (c *call) leavesOutAudit(p *problem) bool {
	known := c.caller.token.Name != ""
	switch {
	case p == nil, known && p.Code != "unauthorized":
		return false
	case p.Code == "rate_limited":
		return true
	}
	from := "audit " + networkOf(c.r.RemoteAddr)
	if c.api.failed.tooMany(from) {
		return true
	}
	c.api.failed.addFailure(from, searchCost)
	return false
}

// readBody reads the body of the request.
func (c *call) readBody(into fields) error { return readBody(c.w, c.r, into) }

// readContext returns the context of a read of the ledger. It ends when the client disconnects.
func (c *call) readContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), c.api.options.RequestTimeout)
}

// changeContext returns the context of a change. It goes on when the client disconnects.
func (c *call) changeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.r.Context()), c.api.options.RequestTimeout)
}

// waitContext returns the context of a request that waits. It ends with the client's connection and
// with the API.
func (c *call) waitContext(d time.Duration) (context.Context, context.CancelFunc, error) {
	who := c.caller.token.Name
	if c.caller.key != "" || who == anonymous { // these are not one client
		who = ""
	}
	if !c.api.polls.tryEnter(who) {
		return nil, nil, refuse("rate_limited", "too many requests wait for something; ask without wait")
	}
	// The listener's time to write is made for requests that do not wait; its time to read ended
	// with the body.
	if err := http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(d + slack)); err != nil {
		c.api.options.Log.Debug("admin.deadline", "error", err)
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), d)
	stop := context.AfterFunc(c.api.life, cancel)
	return ctx, func() { stop(); cancel(); c.api.polls.leave(who) }, nil
}

// slack is how much longer than its wait a waiting request may take.
const slack = 30 * time.Second

// respond answers with v, once the audit line is written.
func (c *call) respond(status int, v any) error {
	c.answer = func() { writeJSON(c.w, status, "application/json", v) }
	return nil
}

// problemOf maps the ledger's errors to problems.
func (c *call) problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	for _, row := range []struct {
		err          error
		code, detail string
	}{
		{idem.ErrNoExecution, "execution_not_found",
			"there is no execution with this ID, or its record has expired or was forgotten"},
		{idem.ErrExecutionID, "execution_not_found", `an execution ID is "exec_" and 32 letters or digits`},
		{idem.ErrNoLock, "lock_not_found", "the lock of this workflow is free"},
		{idem.ErrNoPause, "pause_not_found",
			"this scope is not paused: it was resumed, or its pause has ended by itself"},
		{idem.ErrNoJob, "job_not_found", "there is no job with this ID, or it is one of those that ended before the " +
			"last 100"},
		{idem.ErrJobMoved, "status_changed", "the job has changed meanwhile; look again, then decide"},
		{idem.ErrTooManyJobs, "rate_limited",
			fmt.Sprintf("%d jobs run, which is the most: wait for the end of one, or stop one", idem.MaxOpenJobs)},
		{idem.ErrNotAcknowledged, "mark_not_found",
			"nothing of this is marked as looked at: it was unmarked, or its mark has expired"},
		{idem.ErrCursor, "bad_request", "the cursor does not belong to this list with these filters; begin again " +
			"without one"},
		{idem.ErrStaleToken, "stale_token", "another execution has held the lock since; stop, and discard your writes"},
		{idem.ErrLockExpired, "lock_expired", "the lock was not renewed in time; stop, because it is free for others"},
		{idem.ErrLockLost, "lock_lost", "the lock is no longer this execution's: its process is gone, or it was " +
			"released; stop"},
		{idem.ErrCallbackKey, "unauthorized",
			"the callback key is not this execution's own (header Hooklock-Callback-Key of its delivery)"},
		{idem.ErrTooManySteps, "too_many_steps", "no further step fits; use fewer steps, or shorter names"},
		{idem.ErrSuperseded, "execution_superseded",
			"the event has run again since, and this attempt is kept in short only; name the last attempt"},
		{idem.ErrNotParked, "not_parked", "its sender waits for the answer, so only parked executions can be run or " +
			"skipped"},
		{idem.ErrNoRequest, "request_not_kept",
			"the request of this execution is not stored, or no longer: its sender can send it again"},
		{idem.ErrAlive, "execution_in_flight", "the execution has not ended; cancel it first, or wait for its end"},
		{idem.ErrFinished, "already_finished", "the execution has ended, and its first end stays"},
		{idem.ErrCancelled, "execution_aborted", "the wait for the lock was cancelled"},
	} {
		if errors.Is(err, row.err) {
			p := refuse(row.code, row.detail)
			if p.Code == "unauthorized" {
				p = unauthorizedProblem(row.detail)
			}
			return p
		}
	}
	unclear := func(e error) bool { return errors.Is(err, e) }
	if !slices.ContainsFunc([]error{idem.ErrStoreUnavailable, idem.ErrNotRecorded, context.DeadlineExceeded,
		context.Canceled}, unclear) {
		c.api.options.Log.Error("admin.request", "error", err.Error(), "path", c.endpoint.path)
		return refuse("internal_error", "a bug in Hooklock; its log has more")
	}
	detail := storeReason(err) + "; ask again"
	switch {
	case c.api.life.Err() != nil:
		detail = "this Hooklock shuts down; ask again"
	case c.endpoint.change != "" && c.endpoint.access != forBodies:
		detail = storeReason(err) + "; whether this was done is not known: look, then ask again"
	}
	return refuse("store_unavailable", detail)
}

// storeReason says why the ledger could not be asked: what etcd said, where it said something.
func storeReason(err error) string {
	for _, unavailable := range []error{idem.ErrStoreUnavailable, idem.ErrNotRecorded} {
		_, why, said := strings.Cut(err.Error(), unavailable.Error()+": ")
		if said && !strings.HasSuffix(why, context.DeadlineExceeded.Error()) &&
			!strings.HasSuffix(why, context.Canceled.Error()) {
			return why
		}
	}
	return "etcd does not answer in time"
}
