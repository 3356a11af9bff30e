package wiring

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
)

// ClientTLS returns how a server is verified, and the client certificate for it. setting names it
// in an error. log gets a line if a certificate was renewed, or could not be; it may be nil.
func ClientTLS(setting string, c *config.ClientTLS, log *slog.Logger) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	var err error
	if c.CAFile != "" {
		if t.RootCAs, err = Authorities(c.CAFile); err != nil {
			return nil, cli.Misuse(fmt.Errorf("%s.ca_file: %w", setting, err))
		}
	}
	// a resumed session keeps the identity that it began with, and a client certificate is renewed
	if c.CertFile == "" {
		t.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		return t, nil
	}
	pair, err := newKeyPair(setting, c.CertFile, c.KeyFile, log, time.Now)
	if err != nil {
		return nil, err
	}
	t.GetClientCertificate = pair.toServer
	return t, nil
}

// ServerTLS returns nil if no certificate is configured. setting and log are as for ClientTLS.
func ServerTLS(setting string, c *config.ServerTLS, log *slog.Logger) (*tls.Config, error) {
	if c.CertFile == "" {
		return nil, nil //nolint:nilnil // no certificate, no TLS
	}
	pair, err := newKeyPair(setting, c.CertFile, c.KeyFile, log, time.Now)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.toClient}, nil
}

// AdminTLS returns nil if no certificate is configured. log is as for ClientTLS.
func AdminTLS(c *config.AdminTLS, log *slog.Logger) (*tls.Config, error) {
	t, err := ServerTLS("admin.tls", &config.ServerTLS{CertFile: c.CertFile, KeyFile: c.KeyFile}, log)
	if err != nil || t == nil || c.ClientCAFile == "" {
		return t, err
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	if t.ClientCAs, err = Authorities(c.ClientCAFile); err != nil {
		return nil, cli.Misuse(fmt.Errorf("admin.tls.client_ca_file: %w", err))
	}
	return t, nil
}

// Authorities returns the certificates in a PEM file, for trusting what they have signed.
func Authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no PEM certificate in " + file)
	}
	return pool, nil
}

// keyPair is a certificate of Hooklock and its key. The files are renewed while the process runs,
// so a handshake reads them again. While they cannot be read, or do not fit each other, the one
// before is used.
type keyPair struct {
	setting, certFile, keyFile string
	log                        *slog.Logger
	now                        func() time.Time

	mu      sync.Mutex
	cert    *tls.Certificate
	looked  time.Time
	looking bool
	refused string // the last error of the files; "" = none
}

const (
	// lookAgain is the least time between two reads.
	lookAgain = time.Second
	// lookPatience is how long a handshake waits for a disk.
	lookPatience = time.Second
)

// newKeyPair reads the files. setting names them in errors and in the log, which may be nil.
func newKeyPair(setting, certFile, keyFile string, log *slog.Logger, now func() time.Time) (*keyPair, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, cli.Misuse(fmt.Errorf("%s: cert_file and key_file: %w", setting, err))
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &keyPair{setting: setting, certFile: certFile, keyFile: keyFile, log: log, now: now, cert: &cert,
		looked: now()}, nil
}

// toClient implements tls.Config.GetCertificate.
func (p *keyPair) toClient(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return p.currentCertificate(), nil
}

// toServer implements tls.Config.GetClientCertificate. A server that wants another one gets none,
// as with tls.Config.Certificates.
func (p *keyPair) toServer(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert := p.currentCertificate()
	if asked.SupportsCertificate(cert) != nil {
		return new(tls.Certificate), nil //nolint:nilerr // that it does not fit is no failure: none is shown
	}
	return cert, nil
}

// currentCertificate returns the certificate of the files. If the disk hangs, the handshake goes on
// with the one that is known.
func (p *keyPair) currentCertificate() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looking || p.now().Sub(p.looked) < lookAgain {
		return p.cert
	}
	p.looking = true
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.readFiles()
	}()
	p.mu.Unlock()
	timer := time.NewTimer(lookPatience)
	select {
	case <-over:
	case <-timer.C:
	}
	timer.Stop()
	p.mu.Lock()
	return p.cert
}

func (p *keyPair) readFiles() {
	cert, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		if p.noteRefusal(err.Error()) {
			p.log.Warn("certificate.refused", "setting", p.setting, "error", err.Error())
		}
		return
	}
	if p.setCertificate(&cert) {
		p.log.Info("certificate.renewed", "setting", p.setting, "valid_until", cert.Leaf.NotAfter.UTC())
	}
}

// setCertificate reports whether the certificate has changed, or the files are valid again.
func (p *keyPair) setCertificate(cert *tls.Certificate) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news = p.refused != "" || !bytes.Equal(cert.Certificate[0], p.cert.Certificate[0])
	p.looking, p.looked, p.cert, p.refused = false, p.now(), cert, ""
	return news
}

// noteRefusal reports whether the reason was not the last one.
func (p *keyPair) noteRefusal(why string) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news = p.refused != why
	p.looking, p.looked, p.refused = false, p.now(), why
	return news
}
