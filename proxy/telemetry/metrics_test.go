package telemetry

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/wire"
)

func TestRareSeriesAreShownFromTheStart(t *testing.T) {
	r := open(t)
	r.wants(t,
		`hooklock_deliveries_total{decision="lock_lost",route="plain",would=""} 0`,
		`hooklock_deliveries_total{decision="bypassed",route="plain",would="store_unavailable"} 0`,
		`hooklock_deliveries_total{decision="bypassed",route="observe",would="unverified"} 0`,
		`hooklock_deliveries_total{decision="rejected",route="",would=""} 0`,
		`hooklock_lock_acquisitions_total{result="queue_full",route="plain"} 0`,
		`hooklock_lock_losses_total{reason="session_lost"} 0`, `hooklock_lock_losses_total{reason="unheard"} 0`,
		`hooklock_lock_losses_total{reason="released"} 0`,
		`hooklock_executions_total{outcome="unknown",route="plain"} 0`,
		`hooklock_executions_total{outcome="buried",route="plain"} 0`,
		`hooklock_idempotency_lookups_total{result="mismatch",route="plain"} 0`,
		`hooklock_key_extractions_total{part="event_id",result="missing",route="plain"} 0`,
		`hooklock_config_reloads_total{result="refused"} 0`, `hooklock_answers_unrecorded_total{route="plain"} 0`,
		`hooklock_executions_total{outcome="buried",route=""} 0`,
		`hooklock_executions_total{outcome="unknown",route=""} 0`,
		`hooklock_lock_wait_duration_seconds_count{route="plain"} 0`,
		`hooklock_lock_wait_duration_seconds_bucket{route="observe",le="+Inf"} 0`,
		`hooklock_lock_hold_duration_seconds_sum{route="plain"} 0`,
		`hooklock_delivery_overhead_duration_seconds_bucket{route="plain",le="5e-05"} 0`,
		`hooklock_idempotency_record_size_bytes_count{route="plain"} 0`,
	)
}

func TestAFirstValueTakesThePlaceOfItsZero(t *testing.T) {
	r := open(t)
	r.OnDelivered(executed())
	page := r.page(t, "")
	for line, times := range map[string]int{
		`hooklock_lock_hold_duration_seconds_count{route="plain"} `:    1,
		`hooklock_lock_hold_duration_seconds_count{route="observe"} 0`: 1,
		`hooklock_lock_wait_duration_seconds_count{route="plain"} 0`:   1,
		"# TYPE hooklock_lock_hold_duration_seconds histogram":         1,
	} {
		if n := strings.Count(page, line); n != times {
			t.Errorf("%s is there %d times", line, n)
		}
	}
}

func TestTheEndOfAHoldIsMeasuredAndLogged(t *testing.T) {
	r := open(t)
	ended := &idem.Record{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: "exec_9", Route: "plain", Scope: idem.Scope{Workflow: "acme"}, Attempt: 2, StartedAt: began,
			TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
		End:  idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: began.Add(time.Minute)},
		Size: 900,
	}
	r.OnEnded(ended, true)
	forced := *ended
	forced.Route, forced.Outcome = "somebody else's", idem.Unknown
	r.OnEnded(&forced, true)
	r.wants(t,
		`hooklock_executions_total{outcome="executed",route="plain"} 1`,
		`hooklock_executions_total{outcome="unknown",route=""} 1`,
		`hooklock_lock_hold_duration_seconds_sum{route="plain"} 60`,
		`hooklock_idempotency_record_size_bytes_sum{route="plain"} 900`,
	)
	for _, part := range []string{
		`"msg":"lock.released","route":"plain","workflow":"acme"`,
		`"trace_id":"0af7651916cd43dd8448eb211c80319c","held_ms":60000,"recorded":true,"outcome":"executed"`,
		`"msg":"execution.unknown","route":"somebody else's"`,
	} {
		if !strings.Contains(r.log.String(), part) {
			t.Errorf("%s is not in %s", part, r.log)
		}
	}
}

func TestADeliveryIsMeasuredOnce(t *testing.T) {
	r := open(t)
	r.OnDelivered(executed())
	r.wants(t,
		`hooklock_deliveries_total{decision="executed",route="plain",would=""} 1`,
		`hooklock_delivery_overhead_duration_seconds_bucket{route="plain",le="0.001"} 0`,
		`hooklock_delivery_overhead_duration_seconds_bucket{route="plain",le="0.0025"} 1`,
		`hooklock_delivery_overhead_duration_seconds_count{route="plain"} 1`,
		`hooklock_lock_acquisitions_total{result="acquired",route="plain"} 1`,
		`hooklock_lock_hold_duration_seconds_count{route="plain"} 1`,
		`hooklock_executions_total{outcome="executed",route="plain"} 1`,
		`hooklock_idempotency_lookups_total{result="miss",route="plain"} 1`,
		`hooklock_idempotency_record_size_bytes_sum{route="plain"} 700`,
		`hooklock_key_extractions_total{part="workflow",result="ok",route="plain"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",http_route="/plain/{account}",network_protocol_version="1.1",url_scheme="http"} 1`,
		`http_client_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",network_protocol_version="1.1",server_address="upstream.example",server_port="8081"} 1`,
	)
}

func TestTheBucketsOfOverheadBeginAt50Microseconds(t *testing.T) {
	r := open(t)
	d := executed()
	d.Total = d.Upstream + 49*time.Microsecond
	r.OnDelivered(d)
	r.wants(t, `hooklock_delivery_overhead_duration_seconds_bucket{route="plain",le="5e-05"} 1`)
}

func TestWhatStoodInTheWayIsCounted(t *testing.T) {
	for _, c := range []struct {
		report *proxy.Report
		wants  []string
	}{
		{met(idem.DecisionReplayed, 200), []string{`hooklock_idempotency_lookups_total{result="hit",route="plain"} 1`}},
		{met(idem.DecisionLocked, 409), []string{
			`hooklock_lock_acquisitions_total{result="locked",route="plain"} 1`,
			`hooklock_idempotency_lookups_total{result="miss",route="plain"} 1`,
		}},
		{met(idem.DecisionAttached, 200),
			[]string{`hooklock_idempotency_lookups_total{result="in_flight",route="plain"} 1`}},
		{met(idem.DecisionStoreUnavailable, 503),
			[]string{`hooklock_lock_acquisitions_total{result="store_unavailable",route="plain"} 1`}},
		{func() *proxy.Report {
			r := executed()
			r.Attempt = 2
			return r
		}(), []string{`hooklock_idempotency_lookups_total{result="retry",route="plain"} 1`}},
		{func() *proxy.Report {
			r := met(idem.DecisionWaitTimeout, 409)
			r.Stages.Wait.For = 5 * time.Second
			return r
		}(), []string{`hooklock_lock_wait_duration_seconds_sum{route="plain"} 5`}},
		{func() *proxy.Report {
			r := met(idem.DecisionQueueFull, 429)
			r.Stages.Wait.For = time.Microsecond
			return r
		}(), []string{`hooklock_lock_wait_duration_seconds_count{route="plain"} 0`}},
		{func() *proxy.Report {
			r := executed()
			r.Loss, r.Outcome, r.Recorded = proxy.LossUnheard, "", false
			return r
		}(),
			[]string{`hooklock_lock_losses_total{reason="unheard"} 1`,
				`hooklock_executions_total{outcome="unknown",route="plain"} 0`}},
		{func() *proxy.Report { r := executed(); r.Outcome, r.Recorded = "", false; return r }(), []string{
			`hooklock_answers_unrecorded_total{route="plain"} 1`,
			`hooklock_executions_total{outcome="executed",route="plain"} 0`,
		}},
		{func() *proxy.Report {
			r := executed()
			r.Decision, r.Would, r.Outcome, r.Recorded = idem.DecisionBypassed, idem.DecisionStoreUnavailable, "", false
			return r
		}(), []string{`hooklock_answers_unrecorded_total{route="plain"} 0`}},
		{func() *proxy.Report {
			r := executed()
			r.Outcome = ""
			return r
		}(), []string{`hooklock_executions_total{outcome="not_executed",route="plain"} 1`}},
		{func() *proxy.Report { r := executed(); r.Hold, r.Outcome = time.Minute, ""; return r }(), []string{
			`hooklock_executions_total{outcome="executed",route="plain"} 0`,
			`hooklock_executions_total{outcome="unknown",route="plain"} 0`,
		}},
		{func() *proxy.Report {
			r := met(idem.DecisionUnverified, 401)
			r.Gate, r.Scheme, r.Signature = "", "stripe", "mismatch"
			return r
		}(), []string{`hooklock_signature_verifications_total{result="mismatch",route="plain",scheme="stripe"} 1`}},
	} {
		t.Run(string(c.report.Decision)+string(c.report.Loss), func(t *testing.T) {
			r := open(t)
			r.OnDelivered(c.report)
			r.wants(t, c.wants...)
		})
	}
}

func TestAFailedCallIsMeasuredByItsCause(t *testing.T) {
	r := open(t)
	d := executed()
	d.Decision, d.Status, d.UpstreamStatus = idem.DecisionUpstreamTimeout, 504, 0
	r.OnDelivered(d)
	r.wants(t,
		`http_client_request_duration_seconds_count{error_type="upstream_timeout",http_request_method="POST",network_protocol_version="1.1",server_address="upstream.example",server_port="8081"} 1`,
		`http_server_request_duration_seconds_count{error_type="504",http_request_method="POST",http_response_status_code="504",http_route="/plain/{account}",network_protocol_version="1.1",url_scheme="http"} 1`,
	)
}

func TestAPassingRequestIsMeasuredWithoutARoute(t *testing.T) {
	r := open(t)
	d := executed()
	d.Route, d.Decision, d.Method = "", "", "_OTHER"
	r.OnPassed(d)
	r.wants(t,
		`http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="200",network_protocol_version="1.1",url_scheme="http"} 1`)
	if strings.Contains(r.page(t, ""), `hooklock_deliveries_total{decision="",`) {
		t.Error("it is counted as a delivery")
	}
}

func TestObservedMetricsAreReadAtEachScrape(t *testing.T) {
	r := open(t)
	r.options.Now = func() time.Time { return began.Add(time.Minute) }
	err := r.Watch(watched(Watched{
		Active: func() (int, time.Time) {
			return 3, began
		}, Waiting: func() (int, time.Time) { return 2, began.Add(time.Second) },
		Held: func() (int, time.Time) { return 0, time.Time{} },
		TTL:  15 * time.Second, Remaining: func() time.Duration {
			return 11 * time.Second
		}, Memory: wire.NewBudget(1 << 20),
		Shed: func() int64 { return 5 }, Audits: func() int64 { return 6 },
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Operation("txn", "etcd-0", "2379", 3*time.Millisecond, "")
	r.Operation("txn", "etcd-0", "2379", time.Second, "UNAVAILABLE")
	r.OnReload(false)
	r.OnReaped(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Route: "plain"}})
	r.OnReaped(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Route: "somebody else's"}})
	r.wants(t,
		`hooklock_lock_active 3`, `hooklock_lock_waiting 2`, `hooklock_session_ttl_remaining_seconds 11`,
		`hooklock_session_ttl_seconds 15`,
		`hooklock_lock_active_oldest_seconds 60`, `hooklock_lock_waiting_oldest_seconds 59`, `hooklock_lock_held 0`,
		`hooklock_lock_held_oldest_seconds 0`, `hooklock_arrivals_shed_total 5`, `hooklock_audits_shed_total 6`,
		`db_client_operation_duration_seconds_count{db_operation_name="txn",db_system_name="etcd",server_address="etcd-0",server_port="2379"} 1`,
		`db_client_operation_duration_seconds_count{db_operation_name="txn",db_system_name="etcd",error_type="UNAVAILABLE",server_address="etcd-0",server_port="2379"} 1`,
		`hooklock_config_reloads_total{result="refused"} 1`, `hooklock_config_reloads_total{result="reloaded"} 0`,
		`hooklock_executions_total{outcome="buried",route="plain"} 1`,
		`hooklock_executions_total{outcome="buried",route=""} 1`,
	)
	page := r.page(t, "")
	for _, name := range []string{`hooklock_build_info{go_version="go1`, `target_info{host_name=`,
		"\ngo_goroutine_count ", "\ngo_memory_used_bytes{"} {
		if !strings.Contains(page, name) {
			t.Errorf("%s is missing", name)
		}
	}
}

// What senders choose freely is in no label, so it can be as much as it likes.
func TestAFloodOfNamesMakesNoNewSeries(t *testing.T) {
	r := open(t)
	flood := func(i int) {
		d := executed()
		d.Workflow, d.Key, d.Execution = fmt.Sprint("w", i), fmt.Sprintf("%016x", i),
			idem.ExecutionID(fmt.Sprint("exec_", i))
		d.TraceID = fmt.Sprintf("%032x", i)
		r.OnDelivered(d)
		r.Event(proxy.EventAcquired, d)
		d.Route, d.Decision = "", ""
		r.OnPassed(d)
	}
	flood(0)
	before := strings.Count(r.page(t, ""), "\n")
	for i := range 3000 {
		flood(i)
	}
	if after := strings.Count(r.page(t, ""), "\n"); after != before {
		t.Errorf("%d lines, then %d", before, after)
	}
}

func TestAReloadAddsRoutesAndKeepsCounts(t *testing.T) {
	r := open(t)
	r.OnDelivered(executed())
	r.SetRoutes([]*proxy.Route{route(t, "plain"), route(t, "new")})
	r.wants(t, `hooklock_deliveries_total{decision="executed",route="plain",would=""} 1`,
		`hooklock_deliveries_total{decision="executed",route="new",would=""} 0`)
}

func TestADisabledSDKMeasuresNothing(t *testing.T) {
	r := open(t, "OTEL_SDK_DISABLED", "true", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	r.OnDelivered(executed())
	if page := r.page(t, ""); page != "" || r.Tracer() != nil {
		t.Errorf("%s", page)
	}
}

func TestTheSeriesOfAFullEtcdIsShownFromTheFirstRequest(t *testing.T) {
	r := open(t)
	const series = `db_client_operation_duration_seconds_count{db_operation_name="txn",db_system_name="etcd",error_type="RESOURCE_EXHAUSTED",server_address="etcd-0",server_port="2379"} `
	if strings.Contains(r.page(t, ""), series) {
		t.Error("before anybody was asked")
	}
	r.Operation("range", "etcd-0", "2379", time.Millisecond, "")
	r.Operation("range", "", "", time.Millisecond, "")
	r.wants(t, series+"0",
		`db_client_operation_duration_seconds_count{db_operation_name="put",db_system_name="etcd",error_type="RESOURCE_EXHAUSTED"} 0`)
	r.Operation("txn", "etcd-0", "2379", time.Millisecond, "RESOURCE_EXHAUSTED")
	r.wants(t, series+"1")
	if n := strings.Count(r.page(t, ""), series); n != 1 {
		t.Errorf("it is there %d times", n)
	}
}

func TestAnUpstreamMakesNoSeriesWithStatusesThatAreNone(t *testing.T) {
	r := open(t)
	for status := 600; status < 1000; status++ {
		d := executed()
		d.Status, d.UpstreamStatus = status, status
		r.OnDelivered(d)
	}
	r.wants(t,
		`http_server_request_duration_seconds_count{error_type="_OTHER",http_request_method="POST",http_route="/plain/{account}",network_protocol_version="1.1",url_scheme="http"} 400`,
		`http_client_request_duration_seconds_count{error_type="_OTHER",http_request_method="POST",network_protocol_version="1.1",server_address="upstream.example",server_port="8081"} 400`,
	)
}

func TestARouteWithoutLocksAcquiresNone(t *testing.T) {
	r := open(t)
	unlocked := route(t, "unlocked")
	unlocked.Policy.Strategy = idem.NoLock
	r.SetRoutes([]*proxy.Route{unlocked})
	ran, down := executed(), met(idem.DecisionStoreUnavailable, 503)
	for _, d := range []*proxy.Report{ran, down} {
		d.Route, d.Locks = "unlocked", false
		r.OnDelivered(d)
	}
	r.wants(t, `hooklock_executions_total{outcome="executed",route="unlocked"} 1`,
		`hooklock_lock_acquisitions_total{result="store_unavailable",route="unlocked"} 1`)
	if page := r.page(t, ""); strings.Contains(page,
		`hooklock_lock_acquisitions_total{result="acquired",route="unlocked"}`) {
		t.Error(page)
	}
}

func TestTheProcessIsMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is known of a process differs from system to system")
	}
	page := open(t).page(t, "")
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
		"process_max_fds", "process_start_time_seconds"} {
		if !strings.Contains(page, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
}
