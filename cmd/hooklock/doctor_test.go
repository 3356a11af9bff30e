package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/doctor"
	"hooklock/cmd/hooklock/serve"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/etcdlock/etcdtest"
	"hooklock/proxy/wiretest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"), // fasthttp's clock has no end
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// write puts a configuration, or another file, into a folder of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secured returns configurations of an etcd that asks for a password, or for a client certificate.
func secured(t *testing.T) map[string]string {
	t.Helper()
	rest := "\nlisten: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\nupstream: %s\nroutes: [{name: a, path: /a}]\ndata_dir: " + t.TempDir() + "\n"
	up := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(up.Close)
	plain := etcdtest.StartWithUsers(t, "/locks")
	authority := etcdtest.NewAuthority(t)
	withTLS, cert := etcdtest.StartWithCertificates(t, authority, "/locks"), authority.Issue(etcdtest.User)
	return map[string]string{
		"a password": fmt.Sprintf("etcd: {endpoints: [%q], prefix: /locks, username: %s, password_file: %q}"+rest,
			plain.Endpoint, etcdtest.User, write(t, "password", etcdtest.Password+"\n"), up.URL),
		"a client certificate": fmt.Sprintf(
			"etcd: {endpoints: [%q], prefix: /locks, tls: {ca_file: %q, cert_file: %q, key_file: %q}}"+rest,
			"https://"+withTLS.Endpoint, authority.CAFile, cert.CertFile, cert.KeyFile, up.URL),
	}
}

func TestServeReachesAnEtcdWithAuthentication(t *testing.T) {
	for name, text := range secured(t) {
		t.Run(name, func(t *testing.T) {
			loaded, err := wiring.Load(&cli.Environment{}, write(t, "sidecar.yaml", text), nil, true)
			if err != nil {
				t.Fatal(err)
			}
			e := &cli.Environment{Stderr: io.Discard}
			defer e.Close()
			s, err := serve.Start(t.Context(), "sidecar.yaml", loaded, serve.OpenLog(e, loaded), nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.Store.WaitReady(ctx); err != nil {
				t.Error(err)
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDoctorPrintsALineForEachCheckAndNoSecret(t *testing.T) {
	for name, text := range secured(t) {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			code := run(t.Context(), []string{"doctor", "--config", write(t, "sidecar.yaml", text)}, nil, &out,
				&problems)
			if code != cli.ExitFine || problems.Len() != 0 {
				t.Errorf("exit code %d, %s", code, problems.String())
			}
			for line := range strings.Lines(out.String()) {
				// those of tests do so in an hour
				ends := strings.HasPrefix(line, "warning  etcd certificate ") && strings.Contains(line, "renew it")
				if !strings.HasPrefix(line, "ok       ") && !strings.HasPrefix(line, "skipped  ") && !ends {
					t.Errorf("got %s", line)
				}
			}
			if !strings.Contains(out.String(), "etcd outside the prefix") ||
				!strings.Contains(out.String(), "denied, as it should be") {
				t.Errorf("got\n%s", out.String())
			}
			if strings.Contains(out.String(), etcdtest.Password) {
				t.Error("the password is in it")
			}
		})
	}
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{"doctor", "-o", "yaml"}, nil, &out, &problems); code != cli.ExitUsage {
		t.Errorf("exit code %d for an unknown format", code)
	}
}

func TestDoctorSaysWhatIsWrongWithTheUpstream(t *testing.T) {
	authority := etcdtest.NewAuthority(t)
	cert := authority.Issue("upstream")
	pair, err := tls.LoadX509KeyPair(cert.CertFile, cert.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	secure := listenOn(t, "tcp", "127.0.0.1:0",
		&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	plain := listenOn(t, "tcp", "127.0.0.1:0", nil)
	socket := wiretest.SocketPath(t)
	listenOn(t, "unix", socket, nil)
	for _, c := range []struct {
		name   string
		url    string
		ca     string
		result diagnose.Result
		says   string
	}{
		{"plain", "http://" + plain, "", diagnose.OK, "no request was sent"},
		{"a socket", "unix://" + socket, "", diagnose.OK, "connected in"},
		{"no socket", "unix:///nowhere.sock", "", diagnose.Failed, "no such file"},
		{"refused", "http://127.0.0.1:1", "", diagnose.Failed, "connection refused"},
		{"a certificate that ends soon", "https://" + secure, authority.CAFile, diagnose.Warning,
			"its certificate ends at"},
		{"an unknown authority", "https://" + secure, "", diagnose.Failed, "unknown authority"},
		{"no TLS there", "https://" + plain, authority.CAFile, diagnose.Failed, "TLS handshake"},
		{"a file that is none", "https://" + secure, cert.KeyFile, diagnose.Failed, "no PEM certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := config.Default()
			conf.Upstream.URL, conf.Upstream.TLS.CAFile, conf.Upstream.ConnectTimeout = c.url, c.ca, time.Minute
			f := doctor.UpstreamFinding(t.Context(), conf)
			if f.Result != c.result || !strings.Contains(f.Found, c.says) ||
				(f.Result != diagnose.OK && f.Advice == "") {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// listenOn accepts connections, answers TLS handshakes where t is given, and says nothing.
func listenOn(tb *testing.T, network, address string, t *tls.Config) string {
	tb.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if t != nil {
				_ = tls.Server(conn, t).Handshake() // a client that goes away is its own affair
			}
			_ = conn.Close()
		}
	}()
	tb.Cleanup(func() { _ = ln.Close(); <-done })
	return ln.Addr().String()
}
