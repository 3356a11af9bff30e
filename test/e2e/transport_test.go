package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSendersMayComeOverTLS(t *testing.T) {
	t.Parallel()
	server, client := wiretest.Certify(t)
	dir := t.TempDir()
	der, err := x509.MarshalPKCS8PrivateKey(server.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", server.Certificates[0].Certificate[0])
	writePEM(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", der)
	h := own(t, strings.Replace(shared.config("tls", ""), "listen: 127.0.0.1:0",
		"listen: {address: '127.0.0.1:0', tls: {cert_file: "+dir+"/cert.pem, key_file: "+dir+"/key.pem}}", 1))
	path := at(t, "plain")
	for _, decision := range []string{"executed", "replayed"} {
		nc, err := tls.Dial("tcp", h.Addr, client)
		if err != nil {
			t.Fatal(err)
		}
		c := testkit.NewConn(t, nc)
		c.Say(testkit.Request(path, "{}", key("1")))
		passed(t, c.Answer("POST"), 200, "done", decision)
	}
	if got := shared.up.Received(path)[0].Header.Get("X-Forwarded-Proto"); got != "https" {
		t.Errorf("X-Forwarded-Proto: %s", got)
	}
}

func TestARenewedCertificateNeedsNoRestart(t *testing.T) {
	t.Parallel()
	authority := etcdtest.NewAuthority(t)
	ours := authority.Issue("gateway")
	h := own(t, strings.Replace(shared.config("renewed", ""), "listen: 127.0.0.1:0",
		"listen: {address: '127.0.0.1:0', tls: {cert_file: "+ours.CertFile+", key_file: "+ours.KeyFile+"}}", 1))
	trusting := authority.Client(etcdtest.Certificate{})
	shown := func() string {
		nc, err := tls.Dial("tcp", h.Addr, trusting)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		return nc.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	kept, err := tls.Dial("tcp", h.Addr, trusting)
	if err != nil {
		t.Fatal(err)
	}
	first := shown()
	authority.Issue("gateway")
	testkit.Until(t, "who connects is shown the new one", func() bool { return shown() != first })
	h.Stderr.AwaitRecord(t, "certificate.renewed", func(r testkit.Record) bool { return r["setting"] == "listen.tls" })
	c := testkit.NewConn(t, kept)
	c.Say(testkit.Request(at(t, "plain"), "{}", key("1")))
	passed(t, c.Answer("POST"), 200, "done", "executed")
}

func TestTheUpstreamMayBeBehindTLSAndIsVerified(t *testing.T) {
	t.Parallel()
	up := testkit.NewTLSUpstream(t, func(r *testkit.Received) string { return testkit.OK(r.Body) })
	nc, err := tls.Dial("tcp", up.Addr, up.TLS)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, ca, "CERTIFICATE", nc.ConnectionState().PeerCertificates[0].Raw)
	_ = nc.Close()
	config := strings.Replace(shared.config("https", ""), shared.up.URL, up.URL, 1)
	stranger := own(t, config)
	refused{502, "upstream_unreachable", "no", "upstream_unreachable"}.check(t,
		testkit.Post(t, stranger.Addr, at(t, "plain"), "{}", key("1")))
	testkit.Until(t, "the event's story has the reason", func() bool {
		return strings.Contains(cli(t, stranger, "executions", "list", "--decision", "upstream_unreachable", "--since",
			"10m", "-o", "json"), `"detail":"TLS handshake: tls: failed to verify certificate: x509: `)
	})
	trusting := own(t, strings.Replace(config, "timeout: 30s", "timeout: 30s, tls: {ca_file: "+ca+"}", 1))
	// what was refused burned nothing
	passed(t, testkit.Post(t, trusting.Addr, at(t, "plain"), "body", key("1")), 200, "body", "executed")
}

func TestTheUpstreamMayBeAUnixSocket(t *testing.T) {
	t.Parallel()
	up := testkit.NewUnixUpstream(t, func(r *testkit.Received) string { return testkit.OK(r.Body) })
	h := own(t, strings.Replace(shared.config("unix", ""), shared.up.URL, up.URL, 1))
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "body", key("1")), 200, "body", "executed")
	if got := up.Received("")[0].Header.Get("Host"); got != "hooks.example.com" {
		t.Errorf("Host: %s", got)
	}
}
