package wiring

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hooklock/config"
	"hooklock/etcdlock/etcdtest"
	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

// clock moves when it is told to.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// shake makes a handshake, and says what the client and the server know of each other then.
func shake(t *testing.T, server, client *tls.Config) (ofServer, ofClient []*x509.Certificate) {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	seen := make(chan []*x509.Certificate, 1)
	go func() {
		defer close(seen)
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		if s, ok := nc.(*tls.Conn); ok && s.HandshakeContext(t.Context()) == nil {
			seen <- s.ConnectionState().PeerCertificates
		}
	}()
	c, err := tls.Dial("tcp", ln.Addr().String(), client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ofClient, ok := <-seen
	if !ok {
		t.Fatal("the server refused the client")
	}
	return c.ConnectionState().PeerCertificates, ofClient
}

func serial(t *testing.T, c etcdtest.Certificate) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.String()
}

func TestARenewedCertificateIsUsedForTheNextConnection(t *testing.T) {
	t.Parallel()
	authority := etcdtest.NewAuthority(t)
	ours := authority.Issue("127.0.0.1")
	server, err := ServerTLS("listen.tls", &config.ServerTLS{CertFile: ours.CertFile, KeyFile: ours.KeyFile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text, err := os.ReadFile(authority.CAFile)
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, pool
	client, err := ClientTLS("upstream.tls", &config.ClientTLS{CAFile: authority.CAFile, CertFile: ours.CertFile,
		KeyFile: ours.KeyFile, ServerName: "127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		want := serial(t, ours)
		testkit.Until(t, "both show the one that is there now", func() bool {
			ofServer, ofClient := shake(t, server, client)
			return ofServer[0].SerialNumber.String() == want && ofClient[0].SerialNumber.String() == want
		})
		authority.Issue("127.0.0.1")
	}
}

// A full handshake for each connection costs both sides more than the delivery does.
func TestAConnectionToAServerOfBeforeResumesItsSession(t *testing.T) {
	t.Parallel()
	authority := etcdtest.NewAuthority(t)
	ours := authority.Issue("127.0.0.1")
	config, err := ClientTLS("upstream.tls", &config.ClientTLS{CAFile: authority.CAFile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(ours.CertFile, ours.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	for n := range 2 {
		answer, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if resumed := answer.TLS.DidResume; resumed != (n > 0) {
			t.Errorf("connection %d: resumed is %v", n, resumed)
		}
	}
}

// As with tls.Config.Certificates: a server that asks all the same would else refuse the
// connection.
func TestAServerThatWantsAnotherAuthoritysCertificateIsShownNone(t *testing.T) {
	t.Parallel()
	authority := etcdtest.NewAuthority(t)
	ours := authority.Issue("127.0.0.1")
	client, err := ClientTLS("upstream.tls", &config.ClientTLS{CAFile: authority.CAFile, CertFile: ours.CertFile,
		KeyFile: ours.KeyFile, ServerName: "127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other := wiretest.Certify(t)
	server := authority.Client(ours)
	server.ClientAuth, server.ClientCAs = tls.VerifyClientCertIfGiven, other.RootCAs
	if _, shown := shake(t, server, client); len(shown) > 0 {
		t.Errorf("it was shown %v", shown[0].Subject)
	}
}

func TestFilesThatDoNotFitEachOtherLeaveTheCertificateThatIsShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := &clock{at: time.Now()}
	authority := etcdtest.NewAuthority(t)
	ours := authority.Issue("ours")
	p, err := newKeyPair("etcd.tls", ours.CertFile, ours.KeyFile, slog.New(slog.NewTextHandler(&out, nil)), at.now)
	if err != nil {
		t.Fatal(err)
	}
	first := p.currentCertificate()
	cert, err := os.ReadFile(ours.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	authority.Issue("ours")
	renewed, err := os.ReadFile(ours.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		if err := os.WriteFile(ours.CertFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
		at.pass(lookAgain)
	}
	put(cert) // beside the other one's key
	for range 3 {
		if p.currentCertificate() != first {
			t.Fatal("another one is shown")
		}
		at.pass(lookAgain)
	}
	put(renewed)
	if p.currentCertificate() == first {
		t.Fatal("the old one is shown")
	}
	p.currentCertificate()
	if said := out.String(); strings.Count(said, "certificate.refused") != 1 ||
		strings.Count(said, "certificate.renewed") != 1 || !strings.Contains(said, "etcd.tls") {
		t.Errorf("said\n%s", said)
	}
}

func TestADiskThatHangsHoldsOneHandshakeUpForAMoment(t *testing.T) {
	t.Parallel()
	at := &clock{at: time.Now()}
	ours := etcdtest.NewAuthority(t).Issue("ours")
	p, err := newKeyPair("listen.tls", ours.CertFile, ours.KeyFile, nil, at.now)
	if err != nil {
		t.Fatal(err)
	}
	first := p.currentCertificate()
	text, err := os.ReadFile(ours.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ours.CertFile); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(ours.CertFile, 0o600); err != nil {
		t.Fatal(err)
	}
	at.pass(lookAgain)
	if p.currentCertificate() != first {
		t.Error("another one is shown")
	}
	at.pass(time.Hour)
	began := time.Now()
	for range 60 {
		if p.currentCertificate() != first {
			t.Error("another one is shown")
		}
	}
	if time.Since(began) >= 30*lookPatience { // not each of them waits, however slow the machine is
		t.Error("the next ones waited, too")
	}
	if err := os.WriteFile(ours.CertFile, text, 0); err != nil { // whoever reads has it now
		t.Fatal(err)
	}
	testkit.Until(t, "the look is over", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.looking
	})
}
