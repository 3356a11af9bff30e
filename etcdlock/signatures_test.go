package etcdlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func allBadSignatures(tb testing.TB, s *Store, q idem.BadSignatureQuery) (all []idem.BadSignature) {
	tb.Helper()
	for {
		page, err := s.BadSignatures(within(tb, patience), q)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, page.BadSignatures...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return all
		}
	}
}

func badSignature(at time.Time, route string) idem.BadSignature {
	return idem.BadSignature{
		At: at, Route: route, From: "192.0.2.1", Scheme: "stripe", Reason: "mismatch", Part: "Stripe-Signature",
		Detail: "not made with this secret", TraceID: "t1", Status: 401,
	}
}

func id(text string) func() string { return func() string { return text } }

func TestBadSignaturesOfAllReplicasAreListedTheNewestFirst(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	a := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	b := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	start := time.Now().UTC().Round(time.Millisecond)
	for i, s := range []*Store{a, b, a, b} {
		s.NoteBadSignature(badSignature(start.Add(time.Duration(i)*time.Second), fmt.Sprintf("r%d", i/2)),
			id(fmt.Sprint("evt_", i)))
	}
	eventually(t, "both have written", func() bool {
		return len(allBadSignatures(t, a, idem.BadSignatureQuery{})) == 2 &&
			len(allBadSignatures(t, b, idem.BadSignatureQuery{PageSize: 1})) == 4
	})
	all := allBadSignatures(t, a, idem.BadSignatureQuery{PageSize: 3})
	for i, got := range all {
		want := badSignature(start.Add(time.Duration(3-i)*time.Second), fmt.Sprintf("r%d", (3-i)/2))
		want.EventID = fmt.Sprint("evt_", 3-i)
		if got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	for want, q := range map[int]idem.BadSignatureQuery{
		2: {Route: "r1"}, 1: {EventID: "evt_2"}, 3: {Since: start.Add(time.Second)}, 0: {Route: "other"},
	} {
		if got := allBadSignatures(t, a, q); len(got) != want {
			t.Errorf("%+v: %d, want %d", q, len(got), want)
		}
	}
	if got := allBadSignatures(t, a, idem.BadSignatureQuery{Until: start}); len(got) != 1 {
		t.Errorf("until: %d", len(got))
	}
	if _, err := a.BadSignatures(within(t, patience), idem.BadSignatureQuery{Cursor: "audits/x"}); !errors.Is(err,
		idem.ErrCursor) {
		t.Errorf("a cursor of another list: %v", err)
	}
	kvs, err := e.Client.Get(within(t, patience), a.layout.All(protocol.KindSignatures), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range kvs.Kvs {
		left, err := e.Client.TimeToLive(within(t, patience), clientv3.LeaseID(kv.Lease))
		if kept := int64(idem.BadSignatureRetention / time.Second); err != nil || left.TTL < kept-60 || left.TTL > kept+
			int64(idem.ExtraRetention(idem.BadSignatureRetention)/time.Second)+60 {
			t.Errorf("%s lives for %d s: %v", kv.Key, left.TTL, err)
		}
	}
}

// Anyone can send bad signatures, as many as they like: few are listed, all are counted, and those
// of another route stay.
func TestAFloodOfBadSignaturesIsCountedAndCostsFewKeys(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	start, named := time.Now().UTC().Round(time.Millisecond), 0
	const flood = 100_000
	for i := range flood {
		s.NoteBadSignature(badSignature(start.Add(time.Duration(i)*time.Microsecond), "flooded"), func() string {
			named++
			return "evt"
		})
	}
	s.NoteBadSignature(badSignature(start, "quiet"), id("evt_quiet"))
	all := allBadSignatures(t, s, idem.BadSignatureQuery{Route: "flooded"})
	total := int64(0)
	for _, one := range all {
		total += 1 + one.More
	}
	if len(all) > 10 || len(all) != named || total != flood {
		t.Errorf("%d are listed and %d named, which stand for %d", len(all), named, total)
	}
	if until := all[0].Until; !until.After(all[0].At) {
		t.Errorf("the newest came at %v", until)
	}
	if got := allBadSignatures(t, s, idem.BadSignatureQuery{Route: "quiet"}); len(got) != 1 {
		t.Errorf("of the other route: %+v", got)
	}
}

func TestBadSignaturesAreBoundedForEachRoute(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s.signatures.Most, s.signatures.MostOfAll = 40, 60
	for i := range 100 {
		one := badSignature(time.Now().Add(time.Duration(i)*time.Millisecond), "old")
		if i >= 90 {
			one.Route = "new"
		}
		key := s.layout.BadSignature(one.At, "another", int64(i), one.Route)
		if _, err := e.Client.Put(within(t, patience), key, string(protocol.EncodeBadSignature(&one))); err != nil {
			t.Fatal(err)
		}
	}
	s.NoteBadSignature(badSignature(time.Now().Add(time.Hour), "new"), id(""))
	count := func(route string) int { return len(allBadSignatures(t, s, idem.BadSignatureQuery{Route: route})) }
	eventually(t, "the oldest are gone", func() bool { return count("old") == 40 })
	if n := count("new"); n != 11 {
		t.Errorf("%d of the other route", n)
	}
}

func TestABadSignatureOfANewerReleaseIsLeftOut(t *testing.T) {
	one := badSignature(time.Now(), "r")
	value := protocol.EncodeBadSignature(&one)
	if protocol.DecodeBadSignature(value) == nil ||
		protocol.DecodeBadSignature([]byte(strings.Replace(string(value), `"v":`, `"v":9`, 1))) != nil {
		t.Errorf("%s", value)
	}
}
