package etcdlock

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	s := openReady(t, Options{Client: server.Client()})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	if _, err := held.Settle(within(t, patience), success("kept")); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, Options{Client: startEmbedded(t, dir).Client()})
	_, seen, err := tryClaim(t, s, lockFor("w", "one"), 0)
	if err != nil || seen == nil || seen.Record == nil || string(seen.Record.Answer.Body) != "kept" {
		t.Fatalf("%+v %v", seen, err)
	}
}

func TestAnEmbeddedEtcdLosesItsSessionsToo(t *testing.T) {
	server := startEmbedded(t, filepath.Join(t.TempDir(), "data"))
	lost := make(chan SessionEvent, 16)
	s := openStore(t, Options{Client: server.Client(), OnSession: func(e SessionEvent) { lost <- e }})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	session, _, _ := s.keeper.Current()
	if _, err := server.Client().Revoke(context.Background(), session.Lease); err != nil {
		t.Fatal(err)
	}
	for e := range lost {
		if e.Opened && e.Adopted == 1 {
			break
		}
	}
	mustSettle(t, held)
}

// TestAKilledProcessLosesNothingThatWasRecorded runs this test binary as the process that is
// killed.
func TestAKilledProcessLosesNothingThatWasRecorded(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("HOOKLOCK_TEST_VICTIM"); dir != "" {
		victim(t, dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "data")
	process := exec.Command(os.Args[0], "-test.run=^TestAKilledProcessLosesNothingThatWasRecorded$", "-test.v")
	process.Env = append(os.Environ(), "HOOKLOCK_TEST_VICTIM="+dir)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for lines := bufio.NewScanner(out); recorded < 20 && lines.Scan(); {
		if strings.Contains(lines.Text(), "recorded") {
			recorded++
		}
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // says that it was killed
	if recorded < 20 {
		t.Fatalf("only %d records before the process ended by itself", recorded)
	}
	s := openStore(t, Options{Client: startEmbedded(t, dir).Client(), Alone: true})
	for i := range recorded {
		_, seen, err := tryClaim(t, s, lockFor(fmt.Sprintf("w%d", i), "one"), 0)
		if err != nil || seen == nil || seen.Record == nil || !seen.Record.Settled() {
			t.Fatalf("%d: %+v %v", i, seen, err)
		}
	}
	// And the lock that it held when it died is freed, without waiting for a TTL.
	eventually(t, "its last lock is reaped", func() bool {
		held, _, err := tryClaim(t, s, lockFor("running", "another"), 0)
		if err != nil {
			t.Fatal(err)
		}
		return held != nil && held.Release(within(t, patience)) == nil
	})
}

func victim(t *testing.T, dir string) {
	s := openStore(t, Options{Client: startEmbedded(t, dir).Client()})
	mustClaim(t, s, lockFor("running", "one"), 0)
	for i := 0; ; i++ {
		held := mustClaim(t, s, lockFor(fmt.Sprintf("w%d", i), "one"), 0)
		mustSettle(t, held)
		fmt.Println("recorded", i)
	}
}
