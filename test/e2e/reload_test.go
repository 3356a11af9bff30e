package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

func refusedReload(text string) func(testkit.Record) bool {
	return func(r testkit.Record) bool { return strings.Contains(r.Text("problem"), text) }
}

func TestAChangedFileIsTakenOver(t *testing.T) {
	t.Parallel()
	config := shared.config("changed", "")
	h := own(t, config)
	path := at(t, "added")
	passed(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 200, "done", "")
	write(t, h.Config, config+`  - {name: added, path: "/added/{w}", workflow: "added/{path.w}"}`+"\n")
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	passed(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 200, "done", "executed")
	write(t, h.Config, strings.Replace(config, "locked: 503", "locked: 429", 1))
	h.Stderr.AwaitRecord(t, "config.reloaded", func(r testkit.Record) bool {
		return strings.Contains(text(r), "respond")
	})
	passed(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 200, "done", "")
}

// text is everything that a reload says it changed.
func text(r testkit.Record) string {
	var all []string
	if list, ok := r["changed"].([]any); ok {
		for _, v := range list {
			if s, ok := v.(string); ok {
				all = append(all, s)
			}
		}
	}
	return strings.Join(all, "\n")
}

// In a pod, a Secret may come up to two minutes after the ConfigMap that names a file of it.
func TestARefusedFileIsTakenOverWhenWhatItNamesIsThere(t *testing.T) {
	t.Parallel()
	config := shared.config("later", "")
	h := own(t, config)
	secret := filepath.Join(t.TempDir(), "stripe.secret")
	write(t, h.Config,
		config+`  - {name: signed, path: "/signed/{w}", workflow: w, preset: stripe, verify: {secret_file: `+secret+
			"}}\n")
	h.Stderr.AwaitRecord(t, "config.refused", refusedReload(secret))
	write(t, secret, "whsec_later")
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	shows(t, h, "hooklock_config_last_reload_successful 1")
	shows(t, h, `hooklock_config_reloads_total{result="refused"} 1`)
	refused{401, "signature_invalid", "no", "unverified"}.check(t, testkit.Post(t, h.Addr, at(t, "signed"), "{}"))
}

func TestSIGHUPReloads(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("hup", ""))
	h.Signal(t, syscall.SIGHUP)
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
}

func TestLimitsAreReloaded(t *testing.T) {
	t.Parallel()
	config := shared.config("limits", "")
	h := own(t, config)
	path := at(t, "plain")
	passed(t, testkit.Post(t, h.Addr, path, strings.Repeat("x", 2000), key("1")), 200, "done", "executed")
	write(t, h.Config, config[:strings.Index(config, "routes:")]+"limits: {request_body: 1KiB}\n"+
		config[strings.Index(config, "routes:"):])
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	refused{413, "body_too_large", "no", "rejected"}.check(t,
		testkit.Post(t, h.Addr, path, strings.Repeat("x", 2000), key("2")))
}

func TestABadFileIsRefusedAndTheOldOneStays(t *testing.T) {
	t.Parallel()
	config := shared.config("bad", "")
	h := own(t, config)
	path := at(t, "plain")
	for problem, bad := range map[string]string{
		"did you mean":           strings.Replace(config, "release_delay: 0s", "release_dely: 0s", 1),
		"needs a restart":        strings.Replace(config, "listen: 127.0.0.1:0", "listen: 127.0.0.1:1", 1),
		"routes":                 strings.Replace(config, "name: plain", "name: 'not a name'", 1),
		"release_delay":          strings.Replace(config, "release_delay: 0s", "release_delay: 15", 1),
		"data_dir":               "data_dir: /somewhere/else\n" + config,
		"sidecar.yaml":           "{",
		"upstream":               strings.Replace(config, "timeout: 30s", "timeout: 31s", 1),
		"captures no {w}":        strings.Replace(config, "/plain/{w}", "/plain/{v}", 1),
		"routes[0].workflow":     strings.Replace(config, "plain/{path.w}", "plain/{path.w", 1),
		"shutdown_timeout":       strings.Replace(config, "shutdown_timeout: 5s", "shutdown_timeout: five", 1),
		"config_version":         "config_version: 2\n" + config,
		"limits.max_connections": "limits: {max_connections: 7}\n" + config,
	} {
		write(t, h.Config, bad)
		h.Stderr.AwaitRecord(t, "config.refused", refusedReload(problem))
		passed(t, testkit.Post(t, h.Addr, path, "{}", key(problem)), 200, "done", "executed")
	}
	write(t, h.Config, config+`  - {name: added, path: "/added/{w}", workflow: "added/{path.w}"}`+"\n")
	h.Stderr.AwaitRecord(t, "config.reloaded", nil) // a mended file is taken over
	passed(t, testkit.Post(t, h.Addr, at(t, "added"), "{}", key("1")), 200, "done", "executed")
}

// A process of which one route locked workflows and another one events cannot keep the two apart.
func TestTheKindOfALockDoesNotChangeByTwoReloadsEither(t *testing.T) {
	t.Parallel()
	config := shared.config("kinds", "")
	const added = `  - {name: added, path: "/added/{w}", workflow: "added/{path.w}", lock: {strategy: wait}}` + "\n"
	h := own(t, config+added)
	write(t, h.Config, config)
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	write(t, h.Config, config+strings.Replace(added, "wait", "none", 1))
	h.Stderr.AwaitRecord(t, "config.refused", refusedReload("route added: lock.strategy"))
	write(t, h.Config, config+strings.Replace(added, "wait", "skip", 1))
	testkit.Until(t, "the same kind to be taken over", func() bool {
		return testkit.Post(t, h.Addr, at(t, "added"), "{}", key("1")).Decision() == "executed"
	})
}

func TestADeliveryThatRunsKeepsTheRulesItBeganWith(t *testing.T) {
	t.Parallel()
	config := shared.config("running", "")
	h := own(t, config)
	path := at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	write(t, h.Config, strings.Replace(config, `path: "/plain/{w}"`, `path: "/elsewhere/{w}"`, 1))
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	work.answer <- testkit.OK("ended")
	passed(t, testkit.Receive(t, "the answer", first), 200, "ended", "executed")
}

func TestTheOldFileIsInForceAgainAfterABadOneThatASignalHadRead(t *testing.T) {
	t.Parallel()
	config := shared.config("unseen", "")
	h := own(t, config)
	write(t, h.Config, config+"nonsense: 1\n")
	h.Signal(t, syscall.SIGHUP) // before the watch of the folder has looked, which it does after a quiet moment
	h.Stderr.AwaitRecord(t, "config.refused", nil)
	write(t, h.Config, config)
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	testkit.Until(t, "nothing says that an older file is in force", func() bool {
		return strings.Contains(h.Metrics(t), "hooklock_config_last_reload_successful 1")
	})
}

func TestAnEmptyFileTakesNoRoutesAway(t *testing.T) {
	t.Parallel()
	// What needs a restart is in the environment, so that nothing else refuses the file.
	env := []string{"HOOKLOCK__LISTEN=127.0.0.1:0", "HOOKLOCK__ADMIN__LISTEN=127.0.0.1:0", "HOOKLOCK__UPSTREAM=" +
		shared.up.URL, "HOOKLOCK__ETCD__ENDPOINTS=" + shared.etcd.Endpoint}
	h := own(t, `routes: [{name: cut, path: "/cut/{w}", event_id: "{header.Idempotency-Key}"}]`, env...)
	path := at(t, "cut")
	passed(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 200, "done", "executed")
	write(t, h.Config, "\n")
	h.Stderr.AwaitRecord(t, "config.refused", refusedReload("is empty"))
	passed(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 200, "done", "replayed")
}

// What was accepted is not forgotten with its route.
func TestAcceptedEventsWithoutARouteAreNamedAndRunUnderItsNewName(t *testing.T) {
	t.Parallel()
	works := make(chan struct{})
	up := testkit.NewUpstream(t, func(*testkit.Received) string {
		select {
		case <-works:
			return testkit.OK("done")
		default:
			return testkit.Reply(503, "not yet")
		}
	})
	config := bare(up.URL, `
routes:
  - {name: stays, path: /stays}
`)
	const gone = `  - {name: gone, path: "/gone/{w}", workflow: "{path.w}", park: {enabled: true, after: 0s, attempts: 1000}}` + "\n"
	h := own(t, config+gone)
	acceptedAs(t, testkit.Post(t, h.Addr, "/gone/a", "1", key("1")), 202)
	id := acceptedAs(t, testkit.Post(t, h.Addr, "/gone/b", "2", key("2")), 202)
	testkit.Until(t, "both to be known", func() bool { return strings.Contains(cli(t, h, "status"), "parked   2") })
	shows(t, h, `hooklock_parked_accepted_total{on="locked",route="gone"} 2`)
	if said := cli(t, h, "validate", "--running", "--config", h.Config); strings.Contains(said,
		"accepted events wait") {
		t.Errorf("validate says %q of what runs", said)
	}
	write(t, h.Config, config)
	if said := cli(t, h, "validate", "--running", "--config", h.Config); !strings.Contains(said,
		"warning: route gone: 2 accepted events wait, and no route runs them") {
		t.Errorf("validate says %q", said)
	}
	if said := cli(t, h, "reload"); !strings.Contains(said,
		"route gone: 2 accepted events wait, and no route runs them") {
		t.Errorf("the reload says %q", said)
	}
	if r := h.Stderr.AwaitRecord(t, "parked.no_route", nil); r.Text("route") != "gone" || r.Number("events") != 2 {
		t.Errorf("%v", r)
	}
	if said := cli(t, h, "status", "-o", "wide"); !strings.Contains(said,
		"accepted events of route gone, which this replica does not have") {
		t.Errorf("the status says\n%s", said)
	}
	if !strings.Contains(h.Metrics(t), "hooklock_parked_unrouted 2") {
		t.Error("no metric says it")
	}
	close(works)
	write(t, h.Config, config+strings.Replace(gone, "name: gone", "name: successor, former_names: [gone]", 1))
	cli(t, h, "reload")
	testkit.Until(t, "both to run", func() bool {
		return execution(t, h, id)["status"] == "SUCCESS" &&
			strings.Contains(h.Metrics(t), "hooklock_parked_unrouted 0")
	})
}

func TestAChangeOfTheFileIsInTheAudit(t *testing.T) {
	t.Parallel()
	config := shared.config("audited", "")
	h := own(t, config)
	audit := func() string { return cli(t, h, "audit", "list", "--what", "config.", "-o", "csv") }
	write(t, h.Config, strings.Replace(config, "locked: 503", "locked: 429", 1))
	testkit.Until(t, "the change is in the audit", func() bool {
		return regexp.MustCompile(
			`,replica \S+,config.reload,done,.*respond.*sidecar.yaml \(the file changed\)`).MatchString(audit())
	})
	write(t, h.Config, config+"nonsense: true\n")
	testkit.Until(t, "the refusal is in the audit", func() bool {
		return regexp.MustCompile(`config.reload,refused: config_refused,.*nonsense: unknown key`).MatchString(audit())
	})
	h.Signal(t, syscall.SIGHUP)
	testkit.Until(t, "the signal is in the audit", func() bool { return strings.Contains(audit(), "(SIGHUP)") })
}
