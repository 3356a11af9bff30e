package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"hooklock/admin/attention"
	"hooklock/admin/client"
	"hooklock/admin/report"
	"hooklock/etcdlock"
	"hooklock/idem"
	"hooklock/test/testkit"
)

// attention returns the items that a token gets, by their kinds.
func (f *fleet) attention(token string) (list client.Attention, items map[string]client.AttentionItem) {
	f.t.Helper()
	a := f.want(200, "", "GET", "/v1/attention", token, "")
	if err := json.Unmarshal(a.body, &list); err != nil {
		f.t.Fatal(err)
	}
	items = map[string]client.AttentionItem{}
	for _, i := range list.Items {
		items[i.Kind] = i
	}
	return list, items
}

// describes opens a replica that says so of itself.
func (f *fleet) describes(n *attention.Note) {
	f.t.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		f.t.Fatal(err)
	}
	f.openWith(f.t, etcdlock.Options{Endpoints: []string{f.etcd.Endpoint}, Holder: n.Replica, Describe: func() []byte {
		return text
	}})
}

func TestWhatIsWrongAtAnyReplicaIsInTheOneList(t *testing.T) {
	f := newFleet(t, func(o *Options) { o.Process = &process{} })
	now := time.Now().UTC().Truncate(time.Second)
	f.describes(&attention.Note{Replica: "one/7", Version: "1.0", StartedAt: now,
		Config: attention.Config{File: "a.yaml", SHA256: "ab", Parts: map[string]string{"route stripe": "1"}},
		Routes: []attention.Route{{
			Route: "stripe",
			Spell: &report.Spell{Since: now.Add(-time.Hour), Last: now, Failed: 60, All: 60,
				Failure: report.Failure{Cause: "the service says 500", Said: "database is locked"}},
			Standings: report.Standings{Verified: report.Standing{InRow: 60, First: now.Add(-time.Hour), Last: now}},
		}}})
	f.describes(&attention.Note{Replica: "two/7", NotReady: "shutting down",
		Config: attention.Config{File: "a.yaml", Refused: []string{"a.yaml:3:1: no"},
			Parts: map[string]string{"route stripe": "2"}}})
	ended := f.run("github/secret", "ended")
	f.settle(ended, failure())
	letter := f.park("stripe/w", "1", "a|b")
	f.deadLetter(f.carry("stripe/w"))
	var items map[string]client.AttentionItem
	testkit.Until(t, "all of it is in the list", func() bool {
		f.api.attention.forgetList()
		_, items = f.attention(opsToken)
		return items[client.AttentionRouteFails].Count == 60 && items[client.AttentionConfigDiffers].Count == 2 &&
			items[client.AttentionUnknown].Count == 2 && items[client.AttentionDeadLetters].Count == 1
	})
	fails := items[client.AttentionRouteFails]
	if want := "stripe has counted 4 in a row: disabled"; !fails.Bad || fails.Said != "database is locked" ||
		fails.Next != want || fails.Text != "stripe fails now: 60 of 60, at one/7 of 2 replicas" {
		t.Errorf("%+v", fails)
	}
	if one := items[client.AttentionDeadLetters]; one.ExecutionID != letter || one.Query["state"] != "dead_letter" ||
		one.LatestAt.IsZero() {
		t.Errorf("%+v", one)
	}
	if _, items := f.attention(readToken1); items[client.AttentionRouteFails].Said != "" ||
		items[client.AttentionRouteFails].Count != 60 {
		t.Errorf("what the service said is for tokens that may see bodies: %+v", items[client.AttentionRouteFails])
	}
	list, items := f.attention(stripeToken)
	if !list.Limited || len(items) != 2 || items[client.AttentionUnknown].Count != 1 ||
		items[client.AttentionDeadLetters].ExecutionID != letter {
		t.Errorf("a token for stripe/* sees %+v", list)
	}
	f.want(201, "", "POST", "/v1/seen", opsToken, `{"concern":"unknown:route","reason":"TICKET-1"}`)
	if list, items := f.attention(opsToken); items[client.AttentionUnknown].Count != 0 || list.LookedAt != 1 {
		t.Errorf("what was looked at is in the list: %+v", items)
	}
}

// silent is a ledger whose store fails at one thing.
type silent struct{ unreachable }

func (silent) Acknowledgements(context.Context) ([]idem.Acknowledgement, error) { return nil, nil }

// recovered is a ledger of a route that failed at a replica that has ended, and succeeded within
// the next quarter of an hour.
type recovered struct {
	silent
	now    time.Time
	failed time.Time // the last time; a request succeeds three minutes later
}

func (l *recovered) Replicas(context.Context) ([]idem.ReplicaNote, error) {
	says, err := json.Marshal(&attention.Note{Replica: "one/7", Routes: []attention.Route{{Route: "stripe",
		Spell: &report.Spell{Since: l.failed.Add(-time.Minute), Last: l.failed, Failed: 60, All: 60}}}})
	return []idem.ReplicaNote{{Writer: "one", At: l.failed, Says: says}}, err
}

func (l *recovered) Counts(_ context.Context, q idem.CountQuery) (idem.CountHistory, error) {
	stripe := idem.RouteHistory{RouteCounts: idem.RouteCounts{Route: "stripe"}}
	if good := l.failed.Add(3 * time.Minute); !good.Before(q.Since) && !good.After(l.now) {
		stripe.Steps = []idem.CountStep{{At: good.Truncate(q.Step), Counts: idem.Counts{idem.CountSucceeded: 1}}}
	}
	return idem.CountHistory{Routes: []idem.RouteHistory{stripe}}, nil
}

func TestARouteThatSucceedsAgainFailsNoMoreForTheHourInWhichItsReplicaIsNamed(t *testing.T) {
	failed := time.Date(2026, 11, 29, 6, 48, 33, 0, time.UTC)
	for minutes := range 60 {
		now := failed.Add(time.Duration(minutes) * time.Minute)
		r := newRig(t, &recovered{now: now, failed: failed}, func(o *Options) {
			o.Process, o.Now = &process{}, func() time.Time { return now }
		})
		a := r.want(200, "", "GET", "/v1/attention", opsToken, "")
		if fails := strings.Contains(string(a.body), "stripe fails now"); fails != (minutes < 3) {
			t.Errorf("after %d minutes: %s", minutes, a.body)
		}
	}
}

func TestWhatCannotBeReadIsNamedAndTheRestIsThere(t *testing.T) {
	r := newRig(t, silent{}, func(o *Options) { o.Process = &process{} })
	a := r.want(200, "", "GET", "/v1/attention", opsToken, "")
	if !strings.Contains(string(a.body), `"kind":"etcd_down"`) ||
		!strings.Contains(string(a.body), `"notKnown":["replicas: `) {
		t.Errorf("%s", a.body)
	}
	r.want(403, "forbidden", "GET", "/v1/replicas", stripeToken, "")
	for _, path := range []string{"/v1/attention", "/v1/replicas"} {
		r.want(400, "bad_request", "GET", path+"?limit=1", opsToken, "")
		r.want(401, "unauthorized", "GET", path, "", "")
	}
}

func TestReplicasAreListedWithWhatDiffers(t *testing.T) {
	f := newFleet(t, nil)
	other := attention.Note{Replica: "b/1", Config: attention.Config{File: "b.yaml", SHA256: "cd",
		Parts: map[string]string{"upstream.url": "2"}}, NotReady: "shutting down"}
	f.describes(&other)
	own, err := json.Marshal(&attention.Note{Replica: "a/1",
		Config: attention.Config{File: "a.yaml", SHA256: "ab", Parts: map[string]string{"upstream.url": "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := f.openWith(t, etcdlock.Options{Endpoints: []string{f.etcd.Endpoint}, Describe: func() []byte { return own }})
	r := newRig(t, s, func(o *Options) { o.RequestTimeout = patience })
	var list client.ReplicaList
	testkit.Until(t, "both are known", func() bool {
		list = client.ReplicaList{}
		a := r.want(http.StatusOK, "", "GET", "/v1/replicas", opsToken, "")
		return json.Unmarshal(a.body, &list) == nil && len(list.Replicas) == 2 &&
			list.Replicas[1].State == client.ReplicaLive
	})
	if a := list.Replicas[0]; a.Replica != "a/1" || !a.Self || len(a.Differs) > 0 || a.Session == "" {
		t.Errorf("%+v", a)
	}
	if b := list.Replicas[1]; b.Replica != "b/1" || strings.Join(b.Differs, " ") != "upstream.url" ||
		b.NotReady == "" || b.ConfigFile != "b.yaml" {
		t.Errorf("%+v", b)
	}
}
