package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// hanging puts a file in place of the one at path whose reading hangs, as that of a file on a
// network that is away. began waits until somebody reads; the reading goes on with what is written
// to the file that it returns, and ends with its Close.
func hanging(t *testing.T, path string) (began func() *os.File) {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(pipe, path); err != nil {
		t.Fatal(err)
	}
	return func() *os.File {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for a reader
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
}

// signed is a route whose deliveries show a token, and that is in the file secret.
func signed(secret string) string {
	return `  - {name: signed, path: "/signed/{w}", event_id: "{header.Idempotency-Key}", verify: {scheme: token, header: X-Token, secret_file: ` + secret + "}}\n"
}

func TestAReloadWhoseFileHangsHoldsUpNeitherDeliveriesNorTheEnd(t *testing.T) {
	t.Parallel()
	for _, hangs := range []string{"secret", "configuration"} {
		t.Run(hangs, func(t *testing.T) {
			t.Parallel()
			secret := filepath.Join(t.TempDir(), "secret")
			write(t, secret, "one")
			h := own(t, shared.config("hanging-"+hangs, "")+signed(secret))
			began := hanging(t, map[string]string{"secret": secret, "configuration": h.Config}[hangs])
			h.Signal(t, syscall.SIGHUP)
			began()
			passed(t, testkit.Post(t, h.Addr, at(t, "signed"), "{}", key("1"), "X-Token: one"), 200, "done", "executed")
			h.Signal(t, syscall.SIGHUP) // this one waits, and SIGTERM is not lost behind it
			h.Signal(t, syscall.SIGUSR1)
			h.Stderr.AwaitRecord(t, "draining", nil)
			h.Signal(t, syscall.SIGTERM)
			if code := h.ExitCode(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// reloadThatHangs is a Hooklock whose reload reads the file secret, which goes on with what is
// written to f. The token was "one".
func reloadThatHangs(t *testing.T, name string) (h *testkit.Hooklock, secret string, f *os.File) {
	t.Helper()
	secret = filepath.Join(t.TempDir(), "secret")
	write(t, secret, "one")
	h = own(t, shared.config(name, "")+signed(secret))
	began := hanging(t, secret)
	h.Signal(t, syscall.SIGHUP)
	return h, secret, began()
}

func TestAReloadIsMadeWhenTheFileThatHungHasBeenRead(t *testing.T) {
	t.Parallel()
	h, _, f := reloadThatHangs(t, "hung")
	passed(t, testkit.Post(t, h.Addr, at(t, "signed"), "{}", key("1"), "X-Token: one"), 200, "done", "executed")
	if _, err := f.WriteString("two"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	passed(t, testkit.Post(t, h.Addr, at(t, "signed"), "{}", key("2"), "X-Token: two"), 200, "done", "executed")
}

func TestAReloadThatReadsForTooLongIsRefusedAndTheNextOneIsNot(t *testing.T) {
	t.Parallel()
	h, secret, _ := reloadThatHangs(t, "hangs-on")
	h.Stderr.AwaitRecord(t, "config.refused", refusedReload("takes longer than"))
	passed(t, testkit.Post(t, h.Addr, at(t, "signed"), "{}", key("1"), "X-Token: one"), 200, "done", "executed")
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	write(t, secret, "two")
	h.Signal(t, syscall.SIGHUP)
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	passed(t, testkit.Post(t, h.Addr, at(t, "signed"), "{}", key("2"), "X-Token: two"), 200, "done", "executed")
}

func TestASignalBeforeTheConfigurationIsReadIsHeardAfterwards(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "one")
	began := hanging(t, secret)
	h := testkit.StartServe(t, hooklockProgram, shared.config("hup-early", "")+signed(secret))
	t.Cleanup(func() { leave(t, h.Process) })
	f := began()
	h.Signal(t, syscall.SIGHUP)
	h.Signal(t, syscall.SIGUSR1)
	if _, err := f.WriteString("one"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	write(t, secret, "one")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	h.Stderr.AwaitRecord(t, "draining", nil)
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
}

func TestASecondSignalEndsAStartThatHangs(t *testing.T) {
	t.Parallel()
	certificate := filepath.Join(t.TempDir(), "collector.pem")
	began := hanging(t, certificate)
	p := testkit.StartServe(t, hooklockProgram, embedded(t.TempDir(), ""),
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1", "OTEL_EXPORTER_OTLP_CERTIFICATE="+certificate)
	began()
	p.Signal(t, syscall.SIGTERM)
	insist(t, p.Process)
	if code := p.ExitCode(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if said := p.Stderr.String(); !strings.Contains(said, "second signal") {
		t.Errorf("it said: %s", said)
	}
}

func TestAReloadReadsNoCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	authority, err := os.ReadFile(etcdtest.NewAuthority(t).CAFile)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file("ca"), string(authority))
	write(t, file("id"), "ID")
	write(t, file("secret"), "SECRET")
	h := own(t, shared.config("hanging-certificates",
		fmt.Sprintf("park_store: {s3: {endpoint: https://127.0.0.1:1, bucket: requests, access_key_file: %s, "+
			"secret_key_file: %s, tls: {ca_file: %s}}}", file("id"), file("secret"), file("ca"))))
	hanging(t, file("ca"))
	held, err := os.OpenFile(file("ca"), os.O_RDWR, 0) // waits for nobody; whoever reads does so until the end
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	h.Signal(t, syscall.SIGHUP)
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	h.Signal(t, syscall.SIGTERM)
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestAReloadMakesItsOwnTokenBesideTheSignals(t *testing.T) {
	t.Parallel()
	dataDir, asked, free := testkit.HangingFolder(t)
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, strings.Repeat("t", 32))
	admin := fmt.Sprintf(`admin: {listen: "127.0.0.1:0", tokens: [{name: t, token_file: %s}]}`, token)
	without := shared.config("hanging-token", "data_dir: "+dataDir)
	const listen = `admin: {listen: "127.0.0.1:0"}`
	h := testkit.Serve(t, hooklockProgram, strings.Replace(without, listen, admin, 1))
	t.Cleanup(free) // the process can go then
	write(t, h.Config, without)
	testkit.Receive(t, "somebody who asks for data_dir", asked)
	h.Signal(t, syscall.SIGUSR1)
	h.Stderr.AwaitRecord(t, "draining", nil)
	h.Signal(t, syscall.SIGTERM)
	h.Stderr.AwaitRecord(t, "stopped", nil)
	free()
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
