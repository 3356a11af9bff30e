package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/deploy/test/kit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// commands is the block of docs/etcd.md that follows the heading and has that text in it.
func commands(t *testing.T, heading, has string) string {
	t.Helper()
	_, section, found := strings.Cut(kit.Read(t, filepath.Join(kit.Root(), "docs/etcd.md")), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/etcd.md has no section %s", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(section, -1) {
		if strings.Contains(block[1], has) {
			return block[1]
		}
	}
	t.Fatalf("the section %s shows no %q", heading, has)
	return ""
}

// shell runs commands as an operator would, each of which must succeed.
func shell(t *testing.T, text string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + cmd.Dir}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v in:\n%s\n%s", err, text, out)
	}
	return string(out)
}

func TestTheRoleOfThePageIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	authority := etcdtest.NewAuthority(t)
	server, root, user := authority.Issue("etcd"), authority.Issue("root"), authority.Issue("hooklock")
	address := testkit.FreePort(t)
	etcd := testkit.Start(t, testkit.Command{Program: etcdProgram, Args: []string{
		"--data-dir", t.TempDir(), "--listen-client-urls", "https://" + address, "--advertise-client-urls",
		"https://" + address,
		"--listen-peer-urls", "http://" + testkit.FreePort(t), "--cert-file", server.CertFile, "--key-file",
		server.KeyFile,
		"--client-cert-auth", "--trusted-ca-file", authority.CAFile, "--unsafe-no-fsync", "--log-level", "error",
	}})
	as := func(c etcdtest.Certificate) []string {
		return []string{"ETCDCTL_ENDPOINTS=https://" + address, "ETCDCTL_CACERT=" + authority.CAFile,
			"ETCDCTL_CERT=" + c.CertFile, "ETCDCTL_KEY=" + c.KeyFile}
	}
	await(t, etcd, as(root))
	shell(t, commands(t, "A user for one prefix", "role add"), as(root)...)
	config := filepath.Join(t.TempDir(), "sidecar.yaml")
	text := fmt.Sprintf(
		"listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\ndata_dir: %q\nupstream: http://%s\netcd: {endpoints: [\"https://%s\"], tls: {ca_file: %q, cert_file: %q, key_file: %q}}\nroutes: [{name: a, path: /a}]\n",
		t.TempDir(), address, address, authority.CAFile, user.CertFile, user.KeyFile)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := shell(t, hooklockProgram+" doctor --config "+config)
	for _, line := range []string{`(?m)^ok +etcd permissions `, `(?m)^ok +etcd outside the prefix +denied`,
		`(?m)^ok +etcd lease `} {
		if !regexp.MustCompile(line).MatchString(said) {
			t.Errorf("doctor does not say %s:\n%s", line, said)
		}
	}
}

// await waits until etcd answers etcdctl.
func await(t *testing.T, etcd *testkit.Process, env []string) {
	t.Helper()
	testkit.Until(t, "etcd answers", func() bool {
		select {
		case <-etcd.Done():
			t.Fatalf("etcd ended: %s", etcd.Stderr)
		default:
		}
		cmd := exec.Command(bin+"/etcdctl", "endpoint", "health", "--command-timeout=1s")
		cmd.Env = env
		return cmd.Run() == nil
	})
}

func TestTheCommandsOfThePageEndNOSPACE(t *testing.T) {
	t.Parallel()
	address := testkit.FreePort(t)
	env := []string{"ETCDCTL_ENDPOINTS=http://" + address}
	etcd := testkit.Start(t, testkit.Command{Program: etcdProgram, Args: []string{
		"--data-dir", t.TempDir(), "--listen-client-urls", "http://" + address, "--advertise-client-urls",
		"http://" + address,
		"--listen-peer-urls", "http://" + testkit.FreePort(t), "--quota-backend-bytes", strconv.Itoa(4 << 20),
		"--unsafe-no-fsync", "--log-level", "error",
	}})
	await(t, etcd, env)
	client := etcdtest.Dial(t, address)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var err error
	for err == nil {
		_, err = client.Put(ctx, "/full", strings.Repeat("x", 64<<10))
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	if said := shell(t, "etcdctl alarm list", env...); !strings.Contains(said, "NOSPACE") {
		t.Fatalf("no alarm: %s", said)
	}
	config := filepath.Join(t.TempDir(), "sidecar.yaml")
	text := fmt.Sprintf(
		"upstream: http://127.0.0.1:1\netcd: {endpoints: [\"http://%s\"]}\nroutes: [{name: a, path: /a}]\n", address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const defrag = "hooklock etcd defrag"
	end := commands(t, "Space", "alarm disarm")
	if !strings.Contains(end, defrag) {
		t.Fatalf("the page does not defragment:\n%s", end)
	}
	shell(t, strings.ReplaceAll(end, defrag, defrag+" --alone --config "+config), env...)
	if said := shell(t, "etcdctl alarm list", env...); strings.Contains(said, "NOSPACE") {
		t.Errorf("still: %s", said)
	}
	if _, err := client.Put(ctx, "/full", "room"); err != nil {
		t.Error(err)
	}
}

// hooklockOn starts a Hooklock on one etcd.
func hooklockOn(t *testing.T, endpoint, upstream string) *testkit.Hooklock {
	t.Helper()
	return testkit.Serve(t, hooklockProgram, fmt.Sprintf(
		"listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\ndata_dir: %q\nupstream: %s\netcd: {endpoints: [%q], request_timeout: 10s}\nroutes: [{name: a, path: /a, workflow: one}]\n", t.TempDir(), upstream, endpoint))
}

func TestARestoredBackupKnowsWhatRanAndGivesNoOldToken(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		return testkit.OK("token " + r.Header.Get("Hooklock-Fencing-Token"))
	})
	member := testkit.StartEtcd(t, etcdProgram, 1)[0]
	h := hooklockOn(t, member.Endpoint, up.URL)
	post := func(h *testkit.Hooklock, id string) *testkit.Answer {
		return testkit.Post(t, h.Addr, "/a", "{}", "Idempotency-Key: "+id)
	}
	kept := post(h, "before")
	dir := t.TempDir()
	text := strings.ReplaceAll(commands(t, "Backup", "snapshot save"), "backup.db", dir+"/backup.db")
	shell(t, text, "ETCDCTL_ENDPOINTS="+member.Endpoint)
	var last int64
	for i := range 30 {
		last = token(t, post(h, fmt.Sprint("after-", i)))
	}
	h.Kill()
	member.Kill()

	address, peer := testkit.FreePort(t), testkit.FreePort(t)
	restore := commands(t, "Backup", "snapshot restore")
	for _, pair := range [][2]string{
		{"backup.db", dir + "/backup.db"}, {"/var/lib/etcd", dir + "/restored"}, {"--name etcd-0", "--name m0"},
		{"etcd-0=https://etcd-0:2380,etcd-1=https://etcd-1:2380,etcd-2=https://etcd-2:2380", "m0=http://" + peer},
		{"https://etcd-0:2380", "http://" + peer},
	} {
		if !strings.Contains(restore, pair[0]) {
			t.Fatalf("the page's command has no %s:\n%s", pair[0], restore)
		}
		restore = strings.ReplaceAll(restore, pair[0], pair[1])
	}
	shell(t, restore)
	etcd := testkit.Start(t, testkit.Command{Program: etcdProgram, Args: []string{
		"--name", "m0", "--data-dir", dir + "/restored", "--listen-client-urls", "http://" + address,
		"--advertise-client-urls", "http://" + address,
		"--listen-peer-urls", "http://" + peer, "--unsafe-no-fsync", "--log-level", "error",
	}})
	await(t, etcd, []string{"ETCDCTL_ENDPOINTS=http://" + address})
	h = hooklockOn(t, "http://"+address, up.URL)
	deadline := time.Now().Add(testkit.Patience)
	again := post(h, "before")
	for again.Status == http.StatusServiceUnavailable && time.Now().Before(deadline) {
		again = post(h, "before")
	}
	if again.Decision() != "replayed" || string(again.Body) != string(kept.Body) {
		t.Errorf("an event of the backup: %v", again)
	}
	if got := token(t, post(h, "new")); got <= last {
		t.Errorf("fencing token %d after %d", got, last)
	}
}

func token(t *testing.T, a *testkit.Answer) int64 {
	t.Helper()
	text, is := strings.CutPrefix(string(a.Body), "token ")
	n, err := strconv.ParseInt(text, 10, 64)
	if !is || err != nil {
		t.Fatalf("no token: %v", a)
	}
	return n
}
