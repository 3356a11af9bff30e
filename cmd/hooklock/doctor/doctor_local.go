package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/etcdlock/embedded"
	"hooklock/etcdlock/predecessor"
	"hooklock/proxy/connect"
)

// soon is how long before its end a certificate is worth a warning.
const soon = 14 * 24 * time.Hour

// storeFindings checks the configured etcd, or the directory of the embedded one.
func storeFindings(ctx context.Context, c *config.Config) []diagnose.Finding {
	if len(c.Etcd.Endpoints) == 0 {
		return []diagnose.Finding{embeddedFinding(c)}
	}
	o, err := wiring.StoreOptions(c, nil)
	if err != nil {
		return []diagnose.Finding{{Check: "etcd", Result: diagnose.Failed, Found: err.Error(),
			Advice: "correct the files of etcd.tls"}}
	}
	return append(diagnose.Etcd(ctx, o, largestValue(c)), restartFinding(c))
}

// restartFinding says whether a process that is started again frees at once what its killed
// predecessor held.
func restartFinding(c *config.Config) diagnose.Finding {
	f := diagnose.Finding{Check: "restart in place", Result: diagnose.Warning}
	waits := fmt.Sprintf("; the locks of a process that was killed stay closed for etcd.session_ttl (%s)",
		c.Etcd.SessionTTL)
	dir := wiring.ProcessDir(c)
	if dir == "" {
		f.Found, f.Advice = "data_dir is empty"+waits,
			"set data_dir to a directory on a local disk that survives a restart"
		return f
	}
	fileSystem, err := predecessor.Look(dir)
	if err != nil {
		f.Found, f.Advice = err.Error()+waits,
			"set data_dir to a directory on a local disk that survives a restart and that this user may write"
		return f
	}
	f.Result, f.Found = diagnose.OK, fmt.Sprintf("on %s (%s) a process that is started again ends the session of "+
		"one that was killed", c.DataDir, fileSystem)
	return f
}

// largestValue returns how large a value the configuration lets Hooklock store in etcd, in bytes,
// with room for what describes it.
func largestValue(c *config.Config) int {
	const described = 4 << 10
	largest := config.Size(0)
	for i := range c.Routes {
		r := &c.Routes[i]
		if largest = max(largest, r.Idempotency.ReplayBody); r.Park.Enabled {
			largest = max(largest, c.ParkStore.Inline)
		}
	}
	return int(largest) + described
}

// embeddedFinding checks the embedded etcd without a start, which would change its data, and the
// owner of its files.
func embeddedFinding(c *config.Config) diagnose.Finding {
	o := wiring.EmbeddedOptions(c, nil)
	dir := o.Dir
	f := diagnose.Finding{Check: "embedded etcd", Result: diagnose.OK}
	s, err := embedded.Look(dir)
	size := fmt.Sprintf("its file has %.1f MiB, its quota is %.1f MiB", float64(s.Size)/(1<<20),
		float64(o.Quota)/(1<<20))
	switch {
	case errors.Is(err, embedded.ErrInUse):
		f.Found = dir + " is in use by a running hooklock; " + size
		f.Advice = "its sessions and alarms cannot be checked from outside: see its /readyz?verbose"
	case err != nil:
		f.Result, f.Found, f.Advice = diagnose.Failed, err.Error(),
			"etcd.endpoints is empty, so an etcd in this process keeps its data there"
		return f
	case !s.Exists:
		f.Found = dir + " will be made"
	default:
		f.Found = dir + " can be used; " + size
	}
	switch {
	case float64(s.Size) > 0.8*float64(o.Quota):
		f.Result, f.Advice = diagnose.Warning, "shorten idempotency.retention, or raise etcd.embedded.quota: a full "+
			"database takes no new locks and records"
	case s.Free < o.Quota-s.Size:
		f.Result, f.Advice = diagnose.Warning, "make room: a full disk ends the embedded etcd, and the process with it"
		f.Found += fmt.Sprintf("; the disk has %.1f MiB left, less than the database may yet take",
			float64(s.Free)/(1<<20))
	}
	return f
}

// UpstreamFinding connects to the upstream, with TLS if configured, and sends no request.
func UpstreamFinding(ctx context.Context, c *config.Config) diagnose.Finding {
	f := diagnose.Finding{Check: "upstream " + c.Upstream.URL, Result: diagnose.Failed,
		Advice: "start it, or correct upstream.url"}
	u, err := url.Parse(c.Upstream.URL)
	if err != nil {
		f.Found = err.Error()
		return f
	}
	network, address := "tcp", config.WithPort(u)
	if u.Scheme == "unix" {
		network, address = "unix", u.Path
	}
	ctx, cancel := context.WithTimeout(ctx, c.Upstream.ConnectTimeout)
	defer cancel()
	began := time.Now()
	var dialer connect.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		f.Found = err.Error()
		return f
	}
	defer conn.Close()
	if u.Scheme != "https" {
		f.Result, f.Advice, f.Found = diagnose.OK, "",
			fmt.Sprintf("connected in %.1f ms; no request was sent", sinceMS(began))
		return f
	}
	f.Advice = "correct upstream.tls, or the upstream's certificate"
	t, err := wiring.ClientTLS("upstream.tls", &c.Upstream.TLS, nil)
	if err != nil {
		f.Found = err.Error()
		return f
	}
	t.ServerName = cmp.Or(t.ServerName, u.Hostname())
	secured := tls.Client(conn, t)
	if err := secured.HandshakeContext(ctx); err != nil {
		f.Found = "TLS handshake: " + err.Error()
		return f
	}
	f.Result, f.Advice, f.Found = diagnose.OK, "",
		fmt.Sprintf("TLS handshake in %.1f ms; no request was sent", sinceMS(began))
	if end := secured.ConnectionState().PeerCertificates[0].NotAfter; time.Until(end) < soon {
		f.Result, f.Advice = diagnose.Warning, "renew the upstream's certificate"
		f.Found += "; its certificate ends at " + end.UTC().Format(time.RFC3339)
	}
	return f
}

func sinceMS(began time.Time) float64 { return float64(time.Since(began).Microseconds()) / 1000 }

// listenFindings checks the addresses of the listeners. A used address is fine if a hooklock with
// this configuration has it: its admin or health listener says so.
func listenFindings(ctx context.Context, c *config.Config) []diagnose.Finding {
	var findings []diagnose.Finding
	running := false
	for _, look := range []func(context.Context, *config.Config) (diagnose.Finding, bool){runningAdmin, runningHealth} {
		if f, is := look(ctx, c); is && !running {
			running, findings = true, append(findings, f)
		}
	}
	for _, l := range []struct{ setting, address string }{
		{"listen", c.Listen.Address}, {"admin.listen", c.Admin.Listen}, {"health.listen", c.Health.Listen},
	} {
		if l.address == "" {
			continue
		}
		f := diagnose.Finding{Check: l.setting + " " + l.address, Result: diagnose.OK, Found: "free"}
		ln, err := wiring.Listen(ctx, l.setting, l.address)
		switch {
		case err == nil:
			_ = ln.Close()
		case errors.Is(err, syscall.EADDRINUSE) && running:
			f.Found = "taken by a running hooklock"
		default:
			f.Result, f.Found, f.Advice = diagnose.Failed, strings.TrimPrefix(err.Error(), l.setting+": "),
				"change "+l.setting
		}
		findings = append(findings, f)
	}
	return append(findings, adminFindings(ctx, c, running)...)
}

// runningFinding gets /livez of an admin or health listener, and a path that does not exist: etcd
// and others have a /livez, too, but answer unknown paths differently. It says whether that
// hooklock is ready.
func runningFinding(ctx context.Context, at string, t *tls.Config) (f diagnose.Finding, is bool) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: t}}
	defer client.CloseIdleConnections()
	if !strings.HasPrefix(statusOf(ctx, client, at+"/livez"), "200 ok") ||
		!strings.Contains(statusOf(ctx, client, at+"/doctor"), "urn:hooklock:problem:") {
		return f, false
	}
	_, address, _ := strings.Cut(at, "://")
	f = diagnose.Finding{Check: "running hooklock", Result: diagnose.OK, Found: "alive and ready at " + address}
	if ready := statusOf(ctx, client, at+"/readyz?verbose"); !strings.HasPrefix(ready, "200 ") {
		f.Result, f.Advice = diagnose.Warning, "its log says more"
		f.Found = "alive at " + address + ", and " + strings.TrimSpace(strings.TrimPrefix(ready, "503 "))
	}
	return f, true
}

// statusOf returns the status and the first bytes of an answer, or "" if there is none.
func statusOf(ctx context.Context, client *http.Client, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	answer, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return ""
	}
	return strconv.Itoa(answer.StatusCode) + " " + string(body)
}
