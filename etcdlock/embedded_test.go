package etcdlock

import (
	"context"
	"path/filepath"
	"testing"

	"hooklock/etcdlock/embedded"
)

func startEmbedded(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func TestRecordsOutliveARestartOfTheEmbeddedEtcd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	server := startEmbedded(t, dir)
	s, err := Open(Options{Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReady(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	if _, err := held.Settle(within(t, patience), success("kept")); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, Options{Client: startEmbedded(t, dir).Client()})
	_, seen, err := s.Claim(within(t, patience), lockFor("w", "one"), 0)
	if err != nil || seen == nil || seen.Record == nil || string(seen.Record.Answer.Body) != "kept" {
		t.Fatalf("%+v %v", seen, err)
	}
}

func TestAnEmbeddedEtcdLosesItsSessionsToo(t *testing.T) {
	server := startEmbedded(t, filepath.Join(t.TempDir(), "data"))
	lost := make(chan SessionEvent, 16)
	s := openStore(t, Options{Client: server.Client(), OnSession: func(e SessionEvent) { lost <- e }})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	session, _, _ := s.keeper.current()
	if _, err := server.Client().Revoke(context.Background(), session.lease); err != nil {
		t.Fatal(err)
	}
	for e := range lost {
		if e.Opened && e.Adopted == 1 {
			break
		}
	}
	if _, err := held.Settle(within(t, patience), success("")); err != nil {
		t.Fatal(err)
	}
}
