package admin

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"

	"golang.org/x/net/http/httpguts"
)

// readCallback reads the callback of an upstream about its own execution. The ledger compares the
// key.
func (c *call) readCallback(more fields) (idem.Callback, error) {
	by := idem.Callback{Execution: idem.ExecutionID(c.name), Key: c.caller.key}
	c.audit.Execution = by.Execution
	all := fields{"token": &by.Token}
	maps.Copy(all, more)
	if err := c.readBody(all); err != nil {
		return by, err
	}
	if by.Token < 0 { // missing = 0: an execution whose lock has no fencing token, which the ledger knows
		return by, refuse("bad_request", "give the token: the number in the header Hooklock-Fencing-Token of the "+
			"delivery")
	}
	if _, _, err := by.Execution.Parse(); err != nil {
		return by, err
	}
	return by, nil
}

// proceedAnswer is the answer to a guard.
type proceedAnswer struct {
	Proceed bool        `json:"proceed"`
	Status  idem.Status `json:"status,omitempty"` // why not
}

func (c *call) guardStep() error {
	var step string
	var plan []string
	by, err := c.readCallback(fields{"step": &step, "plan": &plan})
	if err != nil {
		return err
	}
	c.audit.quiet = step == ""
	if err := checkPlan(step, plan); err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	found, err := c.api.options.Ledger.Guard(ctx, by, step, plan)
	switch {
	case err == nil:
		c.audit.setExecution(found)
		c.audit.Before, c.audit.After = stepsOf(found.Lock)
		return c.respond(http.StatusOK, proceedAnswer{Proceed: true})
	case mustStop(found, err):
		c.audit.setExecution(found)
		c.audit.existing, c.audit.Before, c.audit.After = true, string(found.Status()), string(found.Status())
		c.w.Header().Set("Retry-After", strconv.Itoa(int(longestRetry/time.Second))) // as every 409
		return c.respond(http.StatusConflict, proceedAnswer{Status: found.Status()})
	}
	return c.doNotProceed(by, err)
}

// mustStop reports whether an execution may not go on because it was cancelled, or because it has
// ended.
func mustStop(found *idem.Found, err error) bool {
	return found != nil && (errors.Is(err, idem.ErrCancelled) || errors.Is(err, idem.ErrFinished))
}

// noToken tells a token that was left out from one that is not current.
func noToken(by idem.Callback, err error) error {
	if by.Token == 0 && errors.Is(err, idem.ErrStaleToken) {
		return refuse("bad_request", "give the token: the number in the header Hooklock-Fencing-Token of the delivery")
	}
	return err
}

// doNotProceed makes a refusal also clear to clients that read only guard's proceed.
func (c *call) doNotProceed(by idem.Callback, err error) error {
	p := c.problemOf(noToken(by, err))
	if p.Status == http.StatusPreconditionFailed {
		p.Proceed = new(bool)
	}
	return p
}

// checkPlan bounds what goes into the lock.
func checkPlan(step string, plan []string) error {
	if len(plan) > maxPlan {
		return refuse("bad_request", fmt.Sprintf("plan has more than %d steps", maxPlan))
	}
	if step == "" && plan != nil {
		return refuse("bad_request", "a plan comes with the step that begins now")
	}
	for _, name := range append([]string{step}, plan...) {
		if err := checkWord("step", name); err != nil {
			return err
		}
	}
	if slices.Contains(plan, "") {
		return refuse("bad_request", "plan: a step without a name")
	}
	return nil
}

// stepsOf returns for the audit log which step began, and after which.
func stepsOf(l *idem.Lock) (before, after string) {
	if l == nil || len(l.Steps) == 0 {
		return "", ""
	}
	last := len(l.Steps) - 1
	if last > 0 {
		before = "step " + l.Steps[last-1].Name
	}
	return before, "step " + l.Steps[last].Name
}

// extended is the answer to a heartbeat.
type extended struct {
	Execution string      `json:"executionId"`
	Status    idem.Status `json:"status"`
	ExpiresAt client.Time `json:"expiresAt,omitzero"`
	ExpiresIn *float64    `json:"expiresIn,omitempty" jsonschema:"type=integer,minimum=0,description=Seconds."`
}

func (c *call) renewHold() error {
	by, ttl, err := readRenewal(c.readCallback)
	if err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	found, err := c.api.options.Ledger.Heartbeat(ctx, by, ttl)
	if mustStop(found, err) {
		c.audit.setExecution(found)
		c.audit.Before, c.audit.After = string(found.Status()), string(found.Status())
		return c.cancelledProblem(found)
	}
	if err != nil {
		return c.doNotProceed(by, err)
	}
	c.audit.setExecution(found)
	c.audit.Before, c.audit.After = "held", heldUntil(found.Lock)
	if c.audit.existing = !found.Lock.Held; c.audit.existing {
		c.audit.Before = c.audit.After
	}
	answer := extended{Execution: c.name, Status: found.Status()}
	answer.ExpiresAt, answer.ExpiresIn, _ = c.lockEnd(found.Lock)
	return c.respond(http.StatusOK, answer)
}

// cancelledProblem returns the refusal of a heartbeat.
func (c *call) cancelledProblem(f *idem.Found) error {
	p := refuse("cancel_requested", "a cancel was requested: stop, then report the result with complete")
	if f.Status().Terminal() {
		p = refuse("already_finished", "the execution has ended as "+string(f.Status())+", and its first end stays")
	}
	p.Execution, p.Workflow, p.State, p.Proceed = c.name, f.Workflow(), f.Status(), new(bool)
	return p
}

func (c *call) completeExecution() error {
	var status string
	var answer final
	var failure idem.Failure
	by, err := c.readCallback(fields{
		"status": &status, "response": func(text json.RawMessage) error { return answer.readAnswer(text) },
		"error": fields{"code": &failure.Code, "detail": &failure.Detail},
	})
	if err != nil {
		return err
	}
	f := idem.Final{Status: idem.Status(status), Answer: answer.made}
	if f.Status != idem.Success && f.Status != idem.Failed {
		return refuse("bad_request", "status: give SUCCESS or FAILED; for ABORTED, use cancel")
	}
	if failure != (idem.Failure{}) {
		if f.Status == idem.Success {
			return refuse("bad_request", "error: give it with FAILED only")
		}
		if err := errors.Join(checkWord("error.code", failure.Code),
			checkText("error.detail", failure.Detail, maxText)); err != nil {
			return err
		}
		f.Error = &failure
	}
	ctx, done := c.changeContext()
	defer done()
	// for the audit log; Complete reads for itself
	if now, err := c.api.options.Ledger.Execution(ctx, by.Execution); err == nil {
		c.audit.Before = string(now.Status())
	}
	found, err := c.api.options.Ledger.Complete(ctx, by, f)
	if found != nil {
		c.audit.setExecution(found)
		c.audit.After = string(found.Status())
	}
	if err != nil {
		return noToken(by, err)
	}
	return c.respond(http.StatusOK, viewOfExecution(found))
}

// final reads the answer that duplicates will get.
type final struct{ made *idem.Answer }

func (f *final) readAnswer(text json.RawMessage) error {
	var status int
	var body, encoded string
	headers := map[string]any{}
	if err := decodeMembers(text, fields{
		"status": &status, "body": &body, "bodyBase64": &encoded,
		"headers": func(text json.RawMessage) error {
			if json.Unmarshal(text, &headers) != nil {
				return errors.New("give an object of names and values")
			}
			return nil
		},
	}); err != nil {
		return err
	}
	if status < 200 || status > 599 {
		return errors.New("status: give the status of the answer, 200 to 599")
	}
	content := []byte(body)
	if encoded != "" {
		var err error
		if content, err = base64.StdEncoding.DecodeString(encoded); err != nil || body != "" {
			return errors.New("give body, or bodyBase64 in standard base64")
		}
	}
	if (status == http.StatusNoContent || status == http.StatusNotModified) && len(content) > 0 {
		return fmt.Errorf("an answer with status %d has no body", status)
	}
	kept, err := replayableHeaders(headers)
	if err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	f.made = &idem.Answer{Status: status, Bytes: int64(len(content)), Whole: true, Header: kept, Body: content}
	return nil
}

// maxHeader bounds names and values of all headers of an answer.
const maxHeader = 16 << 10

// replayableHeaders returns the headers that duplicates get, in the order of their names: all
// except those that belong to one connection, one moment or one sender, or that only Hooklock may
// set.
func replayableHeaders(headers map[string]any) ([]idem.HeaderField, error) {
	var kept []idem.HeaderField
	listed := connectionLists(headers)
	seen := map[string]bool{}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		values, err := valuesOf(headers[name])
		if err != nil || !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("%s: give a header's name, and its value as a text or a list of texts",
				quoteText(name))
		}
		lower := strings.ToLower(name)
		if seen[lower] {
			return nil, fmt.Errorf("%s is given twice; give several values as a list", quoteText(name))
		}
		if seen[lower] = true; isDropped(lower) || slices.Contains(listed, lower) {
			continue
		}
		for _, v := range values {
			v = strings.Trim(v, " \t")
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, fmt.Errorf("%s: the value has control characters in it", quoteText(name))
			}
			size += len(name) + len(v)
			kept = append(kept, idem.HeaderField{Name: name, Value: v})
		}
	}
	if size > maxHeader {
		return nil, fmt.Errorf("they are longer than %d bytes", maxHeader)
	}
	return kept, nil
}

func valuesOf(v any) ([]string, error) {
	switch v := v.(type) {
	case string:
		return []string{v}, nil
	case []any:
		values := make([]string, 0, len(v))
		for _, one := range v {
			s, ok := one.(string)
			if !ok {
				return nil, errors.New("not a text")
			}
			values = append(values, s)
		}
		return values, nil
	}
	return nil, errors.New("not a text")
}

// connectionLists returns the headers that a Connection header names (RFC 9110 section 7.6.1), in
// lower case.
func connectionLists(headers map[string]any) []string {
	var listed []string
	for name, v := range headers {
		values, err := valuesOf(v)
		if err != nil || !strings.EqualFold(name, "connection") {
			continue
		}
		for element := range strings.SplitSeq(strings.Join(values, ","), ",") {
			listed = append(listed, strings.ToLower(strings.TrimSpace(element)))
		}
	}
	return listed
}

// isDropped reports whether duplicates never get a header; name is in lower case. The framing is
// made anew for each answer.
func isDropped(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
		"transfer-encoding",
		"upgrade", "content-length", "date", "set-cookie", "www-authenticate", "idempotent-replayed":
		return true
	}
	return strings.HasPrefix(name, "hooklock-")
}
