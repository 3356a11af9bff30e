package etcdtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority that lives as long as its test.
type Authority struct {
	// CAFile is its certificate, PEM.
	CAFile string

	tb   testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is what an Authority has signed, as files.
type Certificate struct {
	CertFile, KeyFile string // paths of PEM files
}

// NewAuthority makes an authority with a new key.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, dir: tb.TempDir(), key: newKey(tb)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	a.CAFile = a.writePEM("ca.pem", "CERTIFICATE", der)
	return a
}

// Issue signs a certificate for 127.0.0.1 and the host name, whose common name is name: good for a
// server, and for the client that etcd takes for the user of that name.
func (a *Authority) Issue(name string) Certificate {
	a.tb.Helper()
	key := newKey(a.tb)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:  []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return Certificate{a.writePEM(name+".pem", "CERTIFICATE", der), a.writePEM(name+".key", "PRIVATE KEY", private)}
}

// Client is what a client needs that trusts this authority and shows c; the zero Certificate shows
// none.
func (a *Authority) Client(c Certificate) *tls.Config {
	a.tb.Helper()
	t := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	ca, err := os.ReadFile(a.CAFile)
	if err != nil {
		a.tb.Fatal(err)
	}
	t.RootCAs.AppendCertsFromPEM(ca)
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			a.tb.Fatal(err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t
}

func (a *Authority) writePEM(name, kind string, der []byte) string {
	a.tb.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatal(err)
	}
	return path
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}
