package senders

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// program is a sender that runs: each call of send makes one event.
type program struct {
	page, route string
	start       func(t *testing.T, url string) (send func(t *testing.T, name string))
}

var programs = map[string]program{
	"alertmanager":    {"alertmanager", "alertmanager", alertmanagerEvery("1m")},
	"docker-registry": {"docker-registry", "docker-registry", startRegistry},
	"tusd":            {"self-hosted", "tusd", startTusd},
	"nsq_to_http":     {"self-hosted", "nsq", startNSQ},
	"syslog-ng":       {"self-hosted", "syslog", startSyslogNG},
}

// alertmanagerEvery starts one that makes a group of each name of an alert, with this
// group_interval. An event is a firing alert; "resolved NAME" ends it.
func alertmanagerEvery(interval string) func(t *testing.T, url string) func(t *testing.T, name string) {
	return func(t *testing.T, url string) func(t *testing.T, name string) {
		t.Helper()
		return startAlertmanager(t, url, interval)
	}
}

func startAlertmanager(t *testing.T, url, interval string) func(t *testing.T, name string) {
	t.Helper()
	program, addr := testkit.Program(t, "prometheus-alertmanager"), testkit.FreePort(t)
	config := write(t, "alertmanager.yml", fmt.Sprintf(`
route: {receiver: service, group_by: [alertname], group_wait: 10ms, group_interval: %s, repeat_interval: 4h}
receivers: [{name: service, webhook_configs: [{url: %q, send_resolved: true}]}]
`, interval, url))
	p := testkit.Start(t, testkit.Command{Program: program,
		Args: []string{"--config.file=" + config, "--storage.path=" + t.TempDir(), "--web.listen-address=" + addr,
			"--cluster.listen-address=", "--web.external-url=http://alertmanager.example.com/"}})
	await(t, p, addr)
	return func(t *testing.T, name string) {
		t.Helper()
		ends := time.Now().Add(time.Hour)
		name, resolved := strings.CutPrefix(name, "resolved ")
		if resolved {
			ends = time.Now()
		}
		post(t, "POST", "http://"+addr+"/api/v2/alerts",
			fmt.Sprintf(`[{"labels":{"alertname":%q},"startsAt":%q,"endsAt":%q}]`, name,
				time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), ends.UTC().Format(time.RFC3339Nano)),
			"Content-Type: application/json")
	}
}

// startRegistry starts a registry; an event is a blob that is pushed.
func startRegistry(t *testing.T, url string) func(t *testing.T, name string) {
	t.Helper()
	program, addr := testkit.Program(t, "docker-registry"), testkit.FreePort(t)
	config := write(t, "registry.yml", fmt.Sprintf(`
version: 0.1
storage: {filesystem: {rootdirectory: %q}}
http: {addr: %q}
notifications: {endpoints: [{name: service, url: %q, timeout: 1s, threshold: 10, backoff: 1s}]}
`, t.TempDir(), addr, url))
	p := testkit.Start(t, testkit.Command{Program: program, Args: []string{"serve", config}})
	await(t, p, addr)
	return func(t *testing.T, name string) {
		t.Helper()
		where := post(t, "POST", "http://"+addr+"/v2/shop/blobs/uploads/", "").Header.Get("Location")
		digest := sha256.Sum256([]byte(name))
		post(t, "PUT", where+"&digest=sha256:"+hex.EncodeToString(digest[:]), name,
			"Content-Type: application/octet-stream")
	}
}

// startTusd starts a server of resumable uploads; an event is an upload that is complete.
func startTusd(t *testing.T, url string) func(t *testing.T, name string) {
	t.Helper()
	program, addr := goProgram(t, "github.com/tus/tusd/v2/cmd/tusd", "require github.com/tus/tusd/v2 v2.8.0"),
		testkit.FreePort(t)
	host, port, _ := strings.Cut(addr, ":")
	p := testkit.Start(t, testkit.Command{Program: program,
		Args: []string{"-host", host, "-port", port, "-upload-dir", t.TempDir(),
			"-hooks-http", url, "-hooks-enabled-events", "post-finish"}})
	await(t, p, addr)
	return func(t *testing.T, name string) {
		t.Helper()
		post(t, "POST", "http://"+addr+"/files/", name, "Tus-Resumable: 1.0.0",
			fmt.Sprintf("Upload-Length: %d", len(name)), "Content-Type: application/offset+octet-stream")
	}
}

// startNSQ starts a queue and what brings its messages to a URL; an event is a message.
func startNSQ(t *testing.T, url string) func(t *testing.T, name string) {
	t.Helper()
	// The replacement is that of nsq's own go.mod, which Go reads in the main module alone.
	const requires = "require github.com/nsqio/nsq v1.3.0\n\nreplace github.com/judwhite/go-svc => github.com/mreiferson/go-svc v1.2.2-0.20210815184239-7a96e00010f6"
	tcp, http := testkit.FreePort(t), testkit.FreePort(t)
	nsqd, toHTTP := goProgram(t, "github.com/nsqio/nsq/apps/nsqd", requires),
		goProgram(t, "github.com/nsqio/nsq/apps/nsq_to_http", requires)
	p := testkit.Start(t, testkit.Command{Program: nsqd,
		Args: []string{"-tcp-address", tcp, "-http-address", http, "-data-path", t.TempDir()}})
	await(t, p, tcp)
	await(t, p, http)
	testkit.Start(t, testkit.Command{Program: toHTTP,
		Args: []string{"-topic", "events", "-channel", "service", "-nsqd-tcp-address", tcp, "-post", url,
			"-consumer-opt", "default_requeue_delay,1s"}}) // 90 s without it
	return func(t *testing.T, name string) {
		t.Helper()
		post(t, "POST", "http://"+http+"/pub?topic=events", name)
	}
}
