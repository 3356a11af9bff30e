package telemetry

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
)

// The label sets of the conventions.
type (
	serverKey struct {
		route, method string
		status        int
		tls, http10   bool
	}
	clientKey struct {
		method, failed string
		status         int
	}
	operationKey struct{ name, host, port, code string }
)

// Bounds of buckets, in seconds and bytes.
var (
	overheadBounds = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3,
		1, 5, 30}
	waitBounds = []float64{5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60}
	holdBounds = []float64{5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60, 300, 1800,
		3600}
	// of the conventions
	httpBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	// of the conventions
	etcdBounds = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	sizeBounds = []float64{512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10,
		256 << 10, 1 << 20}
)

// instruments are all metrics that are updated where something happens. Those that are read on
// collection are in watched.go.
type instruments struct {
	deliveries, acquisitions, losses, executions, lookups, extractions, changed, twins, lost, leftAlone, exhausted,
	ordered, signatures, unrecorded, reloads, messages, asked, tries, parkEnds, accepted, requestFails *counter

	overhead, wait, hold, recordSize *routeHistogram

	server     httpconv.ServerRequestDuration
	client     httpconv.ClientRequestDuration
	operations dbconv.ClientOperationDuration
}

// maker makes instruments and remembers the errors.
type maker struct {
	meter metric.Meter
	errs  []error
}

// makeInstruments makes all instruments. The caller looks at err.
func (m *maker) makeInstruments() *instruments {
	i := &instruments{
		deliveries: newCounter(m, "hooklock.deliveries", "{delivery}",
			"Deliveries by decision. would is what enforcing would have decided about a bypassed one.",
			"route", "decision", "would"),
		acquisitions: newCounter(m, "hooklock.lock.acquisitions", "{acquisition}", "Attempts to get a lock.",
			"route", "result"),
		losses: newCounter(m, "hooklock.lock.losses", "{loss}", "Locks that were lost while their execution ran.",
			"reason"),
		executions: newCounter(m, "hooklock.executions", "{execution}",
			"Executions whose end this process recorded. buried: of a dead process, or of a hold that was not renewed.",
			"route", "outcome"),
		unrecorded: newCounter(m, "hooklock.answers.unrecorded", "{answer}",
			"Answers sent with Hooklock-Recorded: false, because etcd did not have their outcome yet. Includes "+
				"streamed answers, whose headers were already sent.", "route"),
		lookups: newCounter(m, "hooklock.idempotency.lookups", "{lookup}",
			"What was known of an event when a delivery asked to run.", "route", "result"),
		extractions: newCounter(m, "hooklock.key.extractions", "{extraction}",
			"Whether a delivery had a workflow and an event ID.", "route", "part", "result"),
		changed: newCounter(m, "hooklock.duplicates.changed", "{delivery}",
			"Duplicates by event ID with other bytes than the first delivery: these never ran.", "route"),
		twins: newCounter(m, "hooklock.events.twins", "{event}",
			"Events with the body of another one that came shortly before under another event ID (twins).", "route"),
		exhausted: newCounter(m, "hooklock.events.exhausted", "{event}", "Events that failed as often as their "+
			"route lets them (idempotency.attempts, park.attempts): they wait for a person.", "route"),
		leftAlone: newCounter(m, "hooklock.parked.left_alone", "{time}",
			"Times that parked events of a route rested because its service answered 429 or 503 with Retry-After.",
			"route"),
		lost: newCounter(m, "hooklock.events.lost", "{event}", "Refused events that are possibly lost.", "route"),
		ordered: newCounter(m, "hooklock.order.events", "{event}", "Where events of routes with an order stood "+
			"when they ran, or why that could not be read. Of parked ones: hooklock_parked_ends_total.",
			"route", "result"),
		signatures: newCounter(m, "hooklock.signature.verifications", "{verification}", "Checked signatures.",
			"route", "scheme", "result"),
		tries: newCounter(m, "hooklock.parked.tries", "{try}", "Calls of the upstream for parked events.",
			"route", "result"),
		parkEnds: newCounter(m, "hooklock.parked.ends", "{event}", "What became of parked events here: done, "+
			"blocked, a dead letter, superseded by a newer one, or lost to another replica.", "route", "result"),
		accepted: newCounter(m, "hooklock.parked.accepted", "{event}",
			"Deliveries that were accepted to run later, by the reason.", "route", "on"),
		requestFails: newCounter(m, "hooklock.parked.request.failures", "{request}", "Requests of parked events "+
			"that could not be stored (keep: the delivery is answered as without park) or read (fetch: the event "+
			"waits).", "operation"),
		reloads: newCounter(m, "hooklock.config.reloads", "{reload}", "Changes of the configuration.", "result"),
		asked: newCounter(m, "hooklock.asked", "{event}", "Events of unknown outcome that the service was "+
			"asked about, by what it said; unknown: they wait for a person.", "route", "outcome"),
		messages: newCounter(m, "hooklock.notify.messages", "{message}", "Messages about what needs attention, "+
			"of this replica. failed: the receiver did not take it, and it is sent again.", "result"),

		overhead: newRouteHistogram(m, "hooklock.delivery.overhead.duration", "s",
			"Time of a delivery on a route without the call of the upstream. Includes waiting.", overheadBounds),
		wait: newRouteHistogram(m, "hooklock.lock.wait.duration", "s",
			"How long deliveries that waited did so: for a lock, or for the answer of a duplicate.", waitBounds),
		hold: newRouteHistogram(m, "hooklock.lock.hold.duration", "s",
			"From getting a lock to the end of the execution.", holdBounds),
		recordSize: newRouteHistogram(m, "hooklock.idempotency.record.size", "By",
			"Size of the records that executions leave in etcd.", sizeBounds),
	}
	var server, client, operations error
	i.server, server = httpconv.NewServerRequestDuration(m.meter, metric.WithExplicitBucketBoundaries(httpBounds...))
	i.client, client = httpconv.NewClientRequestDuration(m.meter, metric.WithExplicitBucketBoundaries(httpBounds...))
	i.operations, operations = dbconv.NewClientOperationDuration(m.meter,
		metric.WithExplicitBucketBoundaries(etcdBounds...))
	m.errs = append(m.errs, server, client, operations)
	return i
}
