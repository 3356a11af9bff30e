package telemetry

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
)

// OnDelivered implements proxy.Observer.
func (t *Telemetry) OnDelivered(r *proxy.Report) {
	ctx := contextOf(r)
	t.is.deliveries.add(labels{r.Route, string(r.Decision), string(r.Would)})
	t.countNames(r)
	if r.Changed {
		t.is.changed.add(labels{r.Route})
	}
	if r.TwinOf != "" {
		t.is.twins.add(labels{r.Route})
	}
	if r.ParkedOn != "" {
		t.is.accepted.add(labels{r.Route, string(r.ParkedOn)})
	}
	t.countGate(ctx, r)
	t.countRun(ctx, r)
	if r.Route != "" {
		t.is.overhead.recordValue(ctx, r.Route, (r.Total - r.Upstream).Seconds())
	}
	t.countHTTP(ctx, r)
	t.logDelivery(ctx, r)
}

// OnPassed implements proxy.Observer.
func (t *Telemetry) OnPassed(r *proxy.Report) { t.countHTTP(contextOf(r), r) }

// countNames counts how the parts of the name were found.
func (t *Telemetry) countNames(r *proxy.Report) {
	if r.Signature != "" {
		t.is.signatures.add(labels{r.Route, r.Scheme, r.Signature})
	}
	if r.WorkflowPart != "" {
		t.is.extractions.add(labels{r.Route, naming.PartWorkflow, string(r.WorkflowPart)})
	}
	if r.EventIDPart != "" {
		t.is.extractions.add(labels{r.Route, naming.PartEventID, string(r.EventIDPart)})
	}
	if result := orderResult(r); result != "" {
		t.is.ordered.add(labels{r.Route, result})
	}
}

// countGate counts the decision of the gate. A delivery that a newer one has replaced while it
// waited had no lock.
func (t *Telemetry) countGate(ctx context.Context, r *proxy.Report) {
	if r.Gate == "" {
		return
	}
	if result := r.Gate.Row().Acquisition; result != "" && (r.Gate != idem.DecisionSuperseded || r.Stale != "") &&
		(r.Locks || result == string(idem.DecisionStoreUnavailable)) {
		t.is.acquisitions.add(labels{r.Route, result})
	}
	if r.Keyed {
		t.is.lookups.add(labels{r.Route, lookupOf(r.Gate, r.Attempt)})
	}
	// which only looked whether it may wait
	if waited := r.Stages.Wait.For; waited > 0 && r.Gate != idem.DecisionQueueFull {
		t.is.wait.recordValue(ctx, r.Route, waited.Seconds())
	}
}

// countRun counts the end of a delivery that ran. An end that is not recorded yet, and one that
// another process wrote down, is counted by Ended; a hold goes on without this process.
func (t *Telemetry) countRun(ctx context.Context, r *proxy.Report) {
	if r.Loss != "" {
		t.is.losses.add(labels{string(r.Loss)})
	}
	switch {
	case r.Held == 0: // it did not run
	case !r.Recorded:
		if r.Decision != idem.DecisionBypassed { // whose answer is not that of the execution
			t.is.unrecorded.add(labels{r.Route})
		}
	case r.Hold == 0:
		t.countEnd(ctx, r)
	}
}

// countEnd counts how an execution ended.
func (t *Telemetry) countEnd(ctx context.Context, r *proxy.Report) {
	outcome := r.Outcome
	if outcome == "" { // given back without a record
		outcome = idem.NotExecuted
	}
	t.is.executions.add(labels{r.Route, string(outcome)})
	t.is.hold.recordValue(ctx, r.Route, r.Held.Seconds())
	if r.RecordSize > 0 {
		t.is.recordSize.recordValue(ctx, r.Route, float64(r.RecordSize))
	}
}

// countHTTP measures both sides of the proxy, as the conventions for HTTP have it.
func (t *Telemetry) countHTTP(ctx context.Context, r *proxy.Report) {
	pattern := ""
	if r.Route != "" {
		pattern = (*t.patterns.Load())[r.Route]
	}
	key := serverKey{route: pattern, method: r.Method, status: statusLabel(r.Status), tls: r.TLS, http10: r.HTTP10}
	t.is.server.Inst().Record(ctx, r.Total.Seconds(), t.server.valueOf(key)...)
	if r.UpstreamFrom.IsZero() {
		return
	}
	call := clientKey{method: r.Method, status: statusLabel(r.UpstreamStatus)}
	switch {
	case r.UpstreamStatus == 0:
		call.failed = callFailure(r)
	case call.status == 0:
		call.failed = errorType(0).Value.AsString()
	}
	t.is.client.Inst().Record(ctx, r.Upstream.Seconds(), t.client.valueOf(call)...)
}

// statusLabel returns a status of an answer as a label: 0 for one of no class of HTTP, of which an
// upstream can make 400.
func statusLabel(status int) int {
	if status > 599 {
		return 0
	}
	return status
}

// callFailure returns how a call ended that brought no answer: one of our own decisions.
func callFailure(r *proxy.Report) string {
	if r.Decision.Row().Class == idem.ClassFailed {
		return string(r.Decision)
	}
	return "_OTHER"
}

func (t *Telemetry) serverLabels(k serverKey) []attribute.KeyValue {
	labels := []attribute.KeyValue{methodOf(k.method), schemeOf(k.tls), versionOf(k.http10)}
	if k.route != "" {
		labels = append(labels, semconv.HTTPRoute(k.route))
	}
	if k.status != 0 {
		labels = append(labels, semconv.HTTPResponseStatusCode(k.status))
	}
	if k.status >= 500 || k.status == 0 {
		labels = append(labels, errorType(k.status))
	}
	return labels
}

func (t *Telemetry) clientLabels(k clientKey) []attribute.KeyValue {
	labels := append([]attribute.KeyValue{methodOf(k.method), semconv.NetworkProtocolVersion("1.1")},
		addressOf(t.options.UpstreamHost, t.options.UpstreamPort)...)
	switch {
	case k.status == 0:
		labels = append(labels, semconv.ErrorTypeKey.String(k.failed))
	case k.status >= 400:
		labels = append(labels, semconv.HTTPResponseStatusCode(k.status), errorType(k.status))
	default:
		labels = append(labels, semconv.HTTPResponseStatusCode(k.status))
	}
	return labels
}

func methodOf(m string) attribute.KeyValue {
	if m == "" { // it could not be read
		m = string(httpconv.RequestMethodOther)
	}
	return semconv.HTTPRequestMethodKey.String(m)
}

func schemeOf(tls bool) attribute.KeyValue {
	if tls {
		return semconv.URLScheme("https")
	}
	return semconv.URLScheme("http")
}

func versionOf(http10 bool) attribute.KeyValue {
	if http10 {
		return semconv.NetworkProtocolVersion("1.0")
	}
	return semconv.NetworkProtocolVersion("1.1")
}

func errorType(status int) attribute.KeyValue {
	if status == 0 {
		return semconv.ErrorTypeOther
	}
	return semconv.ErrorTypeKey.String(strconv.Itoa(status))
}

// addressOf returns nothing for an etcd in this process.
func addressOf(host, port string) []attribute.KeyValue {
	if host == "" {
		return nil
	}
	labels := []attribute.KeyValue{semconv.ServerAddress(host)}
	if n, err := strconv.Atoi(port); err == nil {
		labels = append(labels, semconv.ServerPort(n))
	}
	return labels
}

// contextOf returns a context with the delivery's span, so that exemplars have its trace.
func contextOf(r *proxy.Report) context.Context {
	if r.Trace == nil {
		return context.Background()
	}
	return r.Trace.Context()
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
