package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/proxy/wire"
)

const (
	// replayHeader tells the service of --to that the request is no delivery.
	replayHeader = "Hooklock-Replay"
	// sendTimeout bounds the wait for a service that sends nothing, as upstream.timeout does by
	// default.
	sendTimeout    = 30 * time.Second
	connectTimeout = 5 * time.Second
	// lanes bounds the requests under way. Those of one workflow share a lane.
	lanes = 8
	// mostNamed bounds the answers that a report names.
	mostNamed = 10
	// defaultRate is that of jobs, a second.
	defaultRate, mostRate = 10, 1000
)

// replay sends kept requests from this machine to another service, and compares its answers with
// the recorded ones. It takes no lock and writes no record. It is safe for concurrent use.
type replay struct {
	d      *Desk
	to     *url.URL
	reason string
	up     *wire.Upstream

	mu     sync.Mutex
	report replayReport
	took   []time.Duration
}

// replayReport is what became of the requests.
type replayReport struct {
	To         string `json:"to"`
	Matched    int    `json:"matched"` // how many executions match
	Sent       int    `json:"sent"`    // requests that were answered whole
	Same       int    `json:"same"`    // answers as recorded
	Differ     int    `json:"differ"`
	Unknown    int    `json:"unknown"`    // answers of executions without a recorded one
	Unanswered int    `json:"unanswered"` // requests without a whole answer
	NotKept    int    `json:"notKept"`    // executions without a kept request
	// Statuses counts the answers by their status.
	Statuses map[string]int `json:"statuses"`
	// Milliseconds are the times to the end of the answers.
	Milliseconds struct {
		P50  float64 `json:"p50"`
		P99  float64 `json:"p99"`
		Most float64 `json:"most"`
	} `json:"milliseconds"`
	// Differences are the first ten that differ, are unanswered or not kept.
	Differences []replayDifference `json:"differences"`
}

type replayDifference struct {
	ExecutionID string `json:"executionId"`
	Event       string `json:"event,omitempty"`
	Workflow    string `json:"workflow"`
	Recorded    int    `json:"recorded,omitempty"` // status; 0 = no answer is recorded
	Got         int    `json:"got,omitempty"`      // status; 0 = no whole answer came
	Why         string `json:"why"`
}

// readTarget reads the URL of --to.
func readTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, cli.Misuse(fmt.Errorf("--to %s: give http://HOST:PORT or https://HOST",
			cli.Plain(withoutPassword(text))))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return nil, cli.Misuse(fmt.Errorf("--to %s: give no more than scheme, host and port: each request keeps its "+
			"own "+
			"path and query", cli.Plain(withoutPassword(text))))
	}
	return u, nil
}

// trustIn returns how the service at to is verified; nil: it has no TLS. The authorities in caFile
// are trusted instead of the system's; "" = the system's are.
func trustIn(to *url.URL, caFile string) (t *tls.Config, err error) {
	switch {
	case to.Scheme == "https":
		t = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: to.Hostname()}
	case caFile != "":
		return nil, cli.Misuse(fmt.Errorf("--to-ca-file is for https, and --to %s has no certificate", to))
	}
	if caFile != "" {
		if t.RootCAs, err = wiring.Authorities(caFile); err != nil {
			return nil, cli.Misuse(fmt.Errorf("--to-ca-file: %w", err))
		}
	}
	return t, nil
}

// replayTo sends the request of the execution that args name, or of all that match.
func (r *Remote) replayTo(ctx context.Context, e *cli.Environment, to, caFile string, args []string,
	b *client.Bulk) error {
	target, err := readTarget(to)
	if err != nil {
		return err
	}
	trust, err := trustIn(target, caFile)
	if err != nil {
		return err
	}
	return r.run(ctx, e, func(ctx context.Context, d *Desk) error {
		s, err := d.newReplay(ctx, target, trust, b.Reason)
		if err != nil {
			return err
		}
		defer func() { _ = s.up.Close() }()
		if len(args) > 0 {
			return s.sendOne(ctx, args[0])
		}
		d.rewriteTimes(&b.Filter.Since, &b.Filter.Until)
		fixTimes(time.Now(), &b.Filter.Since, &b.Filter.Until)
		return s.sendAll(ctx, b)
	})
}

// newReplay returns a replay to a service that is neither the upstream nor Hooklock.
func (d *Desk) newReplay(ctx context.Context, to *url.URL, trust *tls.Config, reason string) (*replay, error) {
	if err := d.refuseOwn(ctx, to); err != nil {
		return nil, err
	}
	o := wire.Options{Addr: config.WithPort(to), ConnectTimeout: connectTimeout, TLS: trust}
	r := &replay{d: d, to: to, reason: reason, up: wire.NewUpstream(o)}
	r.report.To, r.report.Statuses = to.Scheme+"://"+to.Host, map[string]int{}
	r.report.Differences = []replayDifference{}
	return r, nil
}

// sendOne sends the request of the execution that text names.
func (r *replay) sendOne(ctx context.Context, text string) error {
	id, err := r.d.completeID(ctx, text)
	if err != nil {
		return err
	}
	x, err := r.d.Execution(ctx, id)
	if err != nil {
		return err
	}
	return r.sendRequests(ctx, []*client.Execution{x}, mostRate)
}

// sendAll sends the requests of all executions that match and have ended, in the order in which
// they have, or says which they would be.
func (r *replay) sendAll(ctx context.Context, b *client.Bulk) error {
	letters := b.Filter.State != ""
	if b.DryRun {
		return r.d.dryJob(ctx, client.NewJob{Kind: client.JobRerun, Again: !letters, Filter: b.Filter, DryRun: true})
	}
	rate := cmp.Or(b.Rate, defaultRate)
	if rate < 1 || rate > mostRate {
		return cli.Misuse(fmt.Errorf("--rate %d: give a number from 1 to %d", b.Rate, mostRate))
	}
	q := client.ExecutionQuery{Workflow: b.Filter.Workflow, Route: b.Filter.Route, Status: b.Filter.Status,
		Since: b.Filter.Since, Until: b.Filter.Until, Label: b.Filter.Label, Parked: letters, State: b.Filter.State,
		Limit: mostOnAPage}
	var all []*client.Execution
	seen := map[string]bool{}
	for x, err := range r.d.Executions(ctx, q) {
		if err != nil {
			return err
		}
		if x.Status.Terminal() && !seen[x.ExecutionID] {
			seen[x.ExecutionID] = true
			all = append(all, x)
			r.d.progress.setNote("%d match", len(all))
		}
	}
	if slices.Reverse(all); letters { // these are listed in another order
		slices.SortStableFunc(all, func(x, y *client.Execution) int { return x.FinishedAt.Compare(y.FinishedAt.Time) })
	}
	return r.sendRequests(ctx, all, rate)
}

// sendRequests sends the requests, so many a second at most, and reports. What is before an
// interruption is reported, too.
func (r *replay) sendRequests(ctx context.Context, all []*client.Execution, rate int) error {
	r.report.Matched = len(all)
	fmt.Fprintf(r.d.environment.Stderr, "sending to %s, without lock and record; each request has the signature "+
		"with which it came: "+
		"the service refuses it if it checks that and the event is too old (park.signature: renew is for the "+
		"configured "+
		"service alone)\n", r.report.To)
	life, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	var lane [lanes]chan *client.Execution
	for i := range lane {
		lane[i] = make(chan *client.Execution)
		running.Go(func() {
			for x := range lane[i] {
				if life.Err() != nil {
					continue
				}
				if err := r.sendRequest(life, x); err != nil {
					stop(err)
				}
			}
		})
	}
	pause := time.NewTicker(time.Second / time.Duration(rate))
	for _, x := range all {
		h := fnv.New32a()
		_, _ = h.Write([]byte(x.Workflow))
		select {
		case <-life.Done():
		case lane[h.Sum32()%lanes] <- x:
			select {
			case <-pause.C:
			case <-life.Done():
			}
		}
	}
	pause.Stop()
	for i := range lane {
		close(lane[i])
	}
	running.Wait()
	r.d.progress.showOnly("")
	return r.endReport(r.d.explainError(ctx, context.Cause(life)))
}

// errHooklock ends a replay that comes to a Hooklock, perhaps a replica of this one.
var errHooklock = errors.New("a Hooklock answered, and a replay goes to a service: name the service itself")

// sendRequest sends one request. Its error means that no other one can be sent.
func (r *replay) sendRequest(ctx context.Context, x *client.Execution) error {
	var raw bytes.Buffer
	reason := "rerun --to " + r.report.To
	if r.reason != "" {
		reason += ": " + r.reason
	}
	err := r.d.RequestFor(ctx, x.ExecutionID, reason, &raw)
	switch {
	case client.IsCode(err, client.CodeRequestNotKept):
		r.countResult(x, func(n *replayReport) *int { return &n.NotKept }, 0, "its request is not kept")
		return nil
	case err != nil:
		return err
	}
	began := time.Now()
	answer, err := r.sendAndRead(ctx, raw.Bytes())
	if err != nil {
		if ctx.Err() == nil {
			r.countResult(x, func(n *replayReport) *int { return &n.Unanswered }, 0, err.Error())
		}
		return nil
	}
	if answer.ofHooklock {
		return cli.WithCode(fmt.Errorf("--to %s: %w", r.report.To, errHooklock), cli.ExitFailed)
	}
	r.mu.Lock()
	r.took = append(r.took, time.Since(began))
	r.report.Sent++
	r.report.Statuses[strconv.Itoa(answer.status)]++
	r.mu.Unlock()
	r.compareAnswer(x, answer)
	return nil
}

// compareAnswer notes whether an answer is the recorded one.
func (r *replay) compareAnswer(x *client.Execution, got sentAnswer) {
	differ := func(n *replayReport) *int { return &n.Differ }
	switch was := x.Response; {
	case was == nil:
		r.countResult(x, func(n *replayReport) *int { return &n.Unknown }, got.status, "")
	case was.Status != got.status:
		r.countResult(x, differ, got.status, "another status")
	case was.Hash != "" && was.Hash != got.hash:
		r.countResult(x, differ, got.status, "another body")
	default:
		r.countResult(x, func(n *replayReport) *int { return &n.Same }, got.status, "")
	}
}

// countResult counts what became of a request, and names it if why says something.
func (r *replay) countResult(x *client.Execution, counter func(*replayReport) *int, got int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &r.report
	*counter(n)++
	if why != "" && len(n.Differences) < mostNamed {
		one := replayDifference{ExecutionID: x.ExecutionID, Event: x.EventID, Workflow: x.Workflow, Got: got,
			Why: why}
		if x.Response != nil {
			one.Recorded = x.Response.Status
		}
		n.Differences = append(n.Differences, one)
	}
	r.d.progress.showOnly(drawBar(n.Sent+n.Unanswered+n.NotKept, n.Matched) + n.progressText())
}

func (n *replayReport) progressText() string {
	return fmt.Sprintf("%d of %d sent, %d differ, %d unanswered", n.Sent, n.Matched, n.Differ, n.Unanswered)
}

// sentAnswer is what is compared of an answer.
type sentAnswer struct {
	status     int
	hash       string // as client.Response.Hash
	ofHooklock bool
}

// sendAndRead sends a request as the proxy does, with the host of --to, and reads the answer to its
// end. It follows no redirect.
func (r *replay) sendAndRead(ctx context.Context, raw []byte) (got sentAnswer, err error) {
	head, body, err := readKept(raw)
	if err != nil {
		return got, err
	}
	o := wire.HeadOptions{Length: int64(len(body)), Close: true, Host: []byte(r.to.Host),
		Extra: wire.AppendField(nil, replayHeader, []byte("true"))}
	for i, f := range head.Fields() {
		if strings.EqualFold(string(f.Name), "host") {
			o.ForwardedHost = bytes.Clone(f.Value)
			head.SetValue(i, o.Host)
		}
	}
	call := wire.Call{Late: errors.New("no answer within " + cli.Span(sendTimeout))}
	call.Begin(time.Now(), sendTimeout)
	call.Follow(ctx)
	defer call.End()
	var answer wire.Answer
	if err := r.up.Send(&call, head.AppendTo(nil, o), body, false, &answer); err != nil {
		return got, err
	}
	sum := sha256.New()
	_, _ = sum.Write(answer.Body)
	if answer.Rest != nil {
		defer func() { _ = answer.Rest.Close() }()
		if _, err := io.Copy(sum, answer.Rest); err != nil {
			return got, err
		}
	}
	half := sum.Sum(nil)[:sha256.Size/2]
	own := answer.Get("hooklock-decision") != nil || bytes.Contains(answer.Body, []byte(`"urn:hooklock:problem:`))
	return sentAnswer{answer.Status, hex.EncodeToString(half), own}, nil
}

// readKept reads a request as the API gives it.
func readKept(raw []byte) (*wire.Head, []byte, error) {
	end := bytes.Index(raw, []byte("\r\n\r\n"))
	if end < 0 {
		return nil, nil, errors.New("the kept request has no head")
	}
	end += len("\r\n\r\n")
	var read fasthttp.RequestHeader
	if err := read.Read(bufio.NewReaderSize(bytes.NewReader(raw[:end]), max(end, 4096))); err != nil {
		return nil, nil, fmt.Errorf("the kept request: %w", err)
	}
	head := new(wire.Head)
	if err := wire.ParseHead(&read, head); err != nil {
		return nil, nil, fmt.Errorf("the kept request: %w", err)
	}
	return head, raw[end:], nil
}

// endReport prints the report. The exit code is 1 if anything is not as it was recorded.
func (r *replay) endReport(cause error) error {
	n := &r.report
	slices.Sort(r.took)
	if last := len(r.took) - 1; last >= 0 {
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		n.Milliseconds.P50, n.Milliseconds.P99, n.Milliseconds.Most = ms(r.took[last/2]), ms(r.took[last*99/100]),
			ms(r.took[last])
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := r.d.printObject(text, r.printReport); err != nil {
		return err
	}
	said := fmt.Sprintf("%d match, %d sent to %s: %d answered as recorded, %d differ", n.Matched, n.Sent, n.To, n.Same,
		n.Differ)
	for _, more := range []struct {
		n    int
		text string
	}{{n.Unknown, "without a recorded answer"}, {n.Unanswered, "without a whole answer"}, {n.NotKept,
		"without a kept request"}} {
		if more.n > 0 {
			said += fmt.Sprintf(", %d %s", more.n, more.text)
		}
	}
	switch {
	case cause != nil:
		return cli.WithCode(fmt.Errorf("%s; it ended before all were sent: %w", said, cause), cli.ExitFailed)
	case n.Differ+n.Unanswered+n.NotKept > 0:
		return cli.WithCode(errors.New(said), cli.ExitFailed)
	}
	fmt.Fprintln(r.d.environment.Stderr, said)
	return nil
}

// printReport prints the report for people.
func (r *replay) printReport() error {
	n := &r.report
	t := r.d.newTable("STATUS", "ANSWERS")
	for _, status := range slices.Sorted(maps.Keys(n.Statuses)) {
		t.Add(status, strconv.Itoa(n.Statuses[status]))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n.Sent > 0 {
		fmt.Fprintf(r.d.environment.Stdout, "\nhalf answered within %g ms, 99 of 100 within %g ms, all within %g ms\n",
			n.Milliseconds.P50, n.Milliseconds.P99, n.Milliseconds.Most)
	}
	if len(n.Differences) == 0 {
		return nil
	}
	fmt.Fprintln(r.d.environment.Stdout)
	t = r.d.newTable("EXECUTION", "EVENT", "WORKFLOW", "RECORDED", "GOT", "WHY")
	t.Cut = map[string]int{"EXECUTION": 20, "EVENT": 12, "WORKFLOW": 8, "WHY": 16}
	for i := range n.Differences {
		x := &n.Differences[i]
		t.Add(x.ExecutionID, x.Event, x.Workflow, numberText(x.Recorded), numberText(x.Got), x.Why)
	}
	return t.Flush()
}
