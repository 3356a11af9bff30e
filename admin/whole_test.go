package admin

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/admin/client"
	"hooklock/idem"
)

// stored returns the audits that are in etcd now, the newest first; those that changed nothing
// behind the others.
func (f *fleet) stored() (all []idem.Audit) {
	f.t.Helper()
	for _, kind := range []string{"audits/", "refused/"} {
		got, err := f.etcd.Client.Get(within(f.t), "/hooklock/v1/"+kind, clientv3.WithPrefix())
		if err != nil {
			f.t.Fatal(err)
		}
		for _, kv := range got.Kvs {
			var a idem.Audit
			if err := json.Unmarshal(kv.Value, &a); err != nil {
				f.t.Fatal(err)
			}
			all = append(all, a)
		}
	}
	return all
}

// reloading is a process that reloads what has changed, if anything has.
type reloading struct {
	Process
	changed []string
}

func (*reloading) Routes() []client.RouteRules { return nil }

func (r *reloading) Reload(context.Context) (client.Reloaded, []string, error) {
	return client.Reloaded{Changed: r.changed}, nil, nil
}

// If the process is killed after its answer, what it has done is known as well as before.
func TestWhatAPersonHasDoneIsInEtcdWithItsAuditWhenItIsAnswered(t *testing.T) {
	process := &reloading{changed: []string{"routes"}}
	f := newFleet(t, func(o *Options) {
		keptRequests(o)
		backups(func() io.Reader { return strings.NewReader("snapshot") })(o)
		o.Process = process
	})
	letter := func(workflow string) string {
		id := f.park(workflow, "1", "a|b")
		f.deadLetter(f.carry(workflow))
		return id
	}
	does := func(id, what string) func() { return func() { f.does(200, "", id, what) } }
	running, again, held, ended, forced := f.run("running", "1"), f.run("again", "1"), f.hold("held", "1", time.Minute),
		f.run("ended", "1"), f.run("forced", "1")
	f.post(202, "", again, "cancel", `{"reason":"r"}`)
	f.settle(ended, failure())
	waits, _ := lockOf("running", "2"), f.run("cools", "1")
	if place, seen, err := f.enqueue(waits, running.Lock().Revision); place == nil || err != nil {
		t.Fatal(seen, err)
	}
	behind, blocked, blockedToo := f.park("running", "3", "a|b"), f.park("blocked", "1", "a|b"),
		f.park("blocked too", "1", "a|b")
	f.block(f.carry("blocked"))
	f.block(f.carry("blocked too"))
	first, second, third, fourth := letter("letter 1"), letter("letter 2"), letter("letter 3"), letter("letter 4")
	cancel := func(d *delivery, status int, more string) func() {
		return func() { f.post(status, "", d, "cancel", `{"reason":"r"`+more+`}`) }
	}
	for _, c := range []struct {
		name, what, result, before, after string
		workflow                          string
		do                                func()
	}{
		{"cancel what runs", "execution.cancel", "done", "RUNNING", "CANCEL_REQUESTED", "running",
			cancel(running, 202, "")},
		{"cancel it again", "execution.cancel", "nothing to do", "CANCEL_REQUESTED", "CANCEL_REQUESTED", "again",
			cancel(again, 200, "")},
		{"cancel it for good", "execution.cancel", "done", "CANCEL_REQUESTED", "CANCEL_REQUESTED for good", "again",
			cancel(again, 200, `,"final":true`)},
		{"cancel what is held", "execution.cancel", "done", "RUNNING", "CANCEL_REQUESTED", "held",
			cancel(held, 202, "")},
		{"cancel what waits", "execution.cancel", "done", "PENDING", "ABORTED", "running",
			cancel(&delivery{id: string(waits.Execution)}, 202, "")},
		{"force a lock open", "lock.force_release", "done", "locked by " + forced.id, "free, execution ABORTED",
			"forced",
			func() { f.want(200, "", "DELETE", "/v1/locks/forced?execution="+forced.id+"&reason=r", opsToken, "") }},
		{"forget", "execution.forget", "done", "FAILED", "forgotten", "ended",
			func() { f.want(200, "", "DELETE", "/v1/executions/"+ended.id+"?reason=r", opsToken, "") }},
		{"forget a dead letter", "execution.forget", "done", "FAILED", "forgotten", "letter 1",
			func() { f.want(200, "", "DELETE", "/v1/executions/"+first+"?reason=r", opsToken, "") }},
		{"run what waits parked", "execution.run", "done", "PENDING", "PENDING", "running", does(behind, "run")},
		{"run what is blocked", "execution.run", "done", "RUNNING", "RUNNING", "blocked", does(blocked, "run")},
		{"skip what waits parked", "execution.skip", "done", "PENDING", "FAILED", "running", does(behind, "skip")},
		{"skip it again", "execution.skip", "nothing to do", "FAILED", "FAILED", "running", does(behind, "skip")},
		{"skip what is blocked", "execution.skip", "done", "RUNNING", "CANCEL_REQUESTED", "blocked too", func() {
			f.does(202, "", blockedToo, "skip")
		}},
		{"rerun a dead letter", "execution.rerun", "done", "FAILED", "PENDING as ", "letter 2", func() {
			f.does(201, "", second, "rerun")
		}},
		{"read a request", "execution.request", "done", "FAILED", "", "letter 3", func() {
			f.ask("GET", "/v1/executions/"+third+"/request", opsToken, "")
		}},
		{"rerun many", "executions.rerun", "done", "", "1 done, 0 refused", "letter 3",
			func() {
				f.want(200, "", "POST", "/v1/executions/rerun", opsToken,
					`{"reason":"r","filter":{"workflow":"letter 3"}}`)
			}},
		{"one of many", "execution.rerun", "done", "FAILED", "PENDING as ", "letter 4",
			func() {
				f.want(200, "", "POST", "/v1/executions/rerun", opsToken,
					`{"reason":"r","filter":{"workflow":"letter 4"}}`)
			}},
		{"pause", "pause", "done", "not paused", "paused for 1h", "route:a", func() {
			f.want(201, "", "POST", "/v1/pauses", opsToken, `{"scope":"route:a","reason":"r","for":"1h"}`)
		}},
		{"pause it again", "pause", "done", "paused by ops", "paused", "route:a", func() {
			f.want(200, "", "POST", "/v1/pauses", opsToken, `{"scope":"route:a","reason":"r"}`)
		}},
		{"resume", "resume", "done", "paused by ops", "resumed", "route:a", func() {
			f.want(200, "", "DELETE", pausePath("route:a")+"?reason=r", opsToken, "")
		}},
		{"look at a concern", "seen", "done", "not looked at", "looked at until ", "blocked:a", func() {
			f.want(201, "", "POST", "/v1/seen", opsToken, `{"concern":"blocked:a","reason":"r"}`)
		}},
		{"take that back", "unseen", "done", "looked at until ", "not looked at", "blocked:a", func() {
			f.want(200, "", "DELETE", seenPath("blocked:a")+"?reason=r", opsToken, "")
		}},
		{"reload", "config.reload", "done", "", "routes", "", func() {
			f.want(200, "", "POST", "/v1/config/reload", opsToken, "")
		}},
		{"back up", "embedded.backup", "done", "", "", "", func() {
			f.ask("GET", "/v1/embedded/backup", opsToken, "")
		}},
	} {
		before := len(f.stored())
		c.do()
		all := f.stored()
		i := 0
		for i < len(all) && (all[i].What != c.what || all[i].Result != c.result) {
			i++
		}
		switch {
		case len(all) <= before || i == len(all):
			t.Errorf("%s: etcd has no audit of it", c.name)
		case all[i].Who != "ops" || !strings.HasPrefix(all[i].Before, c.before) ||
			!strings.HasPrefix(all[i].After, c.after) || all[i].Workflow != c.workflow:
			t.Errorf("%s: %+v", c.name, all[i])
		}
	}
	// What shows an event after the forget is there, too; f.first knows of it from etcd alone.
	for _, l := range []idem.Lock{lockOf("ended", "1"), lockOf("letter 1", "1")} {
		page, err := f.first.Executions(within(t), idem.ExecutionQuery{EventID: "1", Workflow: l.Workflow})
		if err != nil || len(page.Executions) != 1 || page.Executions[0].Status() != idem.Released ||
			page.Executions[0].Arrivals.Forgotten.Outcome != idem.Unknown {
			t.Errorf("%s after its forget: %+v, %v", l.Workflow, page.Executions, err)
		}
	}
	page, err := f.first.ParkedEntries(within(t), idem.ParkedQuery{Workflow: "letter 1"})
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("what is kept of a forgotten dead letter: %+v, %v", page.Entries, err)
	}
	if got, err := f.etcd.Client.Get(within(t), "/hooklock/v1/requests/"+first); err != nil || got.Count != 0 {
		t.Errorf("its request is in etcd: %v", err)
	}
	_ = fourth
	f.settle(running, failure())
	f.settle(again, failure())
	f.settle(held, failure())
}

// watched is a ledger that looks at etcd before it runs something again.
type watched struct {
	Ledger
	before func()
}

func (w *watched) Rerun(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error) {
	w.before()
	return w.Ledger.Rerun(ctx, id, a)
}

func TestAnActionOnManyIsAuditedBeforeTheFirstOfThem(t *testing.T) {
	f := newFleet(t, keptRequests)
	f.park("w", "1", "a|b")
	f.deadLetter(f.carry("w"))
	of := func() (all []idem.Audit) {
		for _, a := range f.stored() {
			if a.What == "executions.rerun" {
				all = append(all, a)
			}
		}
		return all
	}
	looked := 0
	f.api.options.Ledger = &watched{f.second, func() {
		looked++
		if all := of(); len(all) != 1 || all[0].Result != idem.AuditBegun || all[0].Why != "r" || all[0].Who != "ops" {
			t.Errorf("while it is under way: %+v", all)
		}
	}}
	f.want(200, "", "POST", "/v1/executions/rerun", opsToken, `{"reason":"r","filter":{"workflow":"w"}}`)
	if all := of(); looked != 1 || len(all) != 1 || all[0].Result != idem.AuditDone ||
		all[0].After != "1 done, 0 refused" {
		t.Errorf("looked %d times; in the end: %+v", looked, all)
	}
}
