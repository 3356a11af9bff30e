package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// TLS has the names of the PEM files for an https connection. With the zero value the system's
// authorities are trusted, and no certificate is shown.
type TLS struct {
	CAFile string // CAFile has the authorities to trust. "" is the system's.
	// CertFile has the client certificate, if admin.tls.client_ca_file asks for one.
	CertFile string
	KeyFile  string // KeyFile has the key of the client certificate.
	// ServerName is the name in the server's certificate. "" is the host of the URL.
	ServerName string
}

func newTransport(u *url.URL, t TLS) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 16,
	}
	switch u.Scheme {
	case "http", "https":
		if u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("URL: write it as http://HOST:PORT or https://HOST:PORT")
		}
	case "unix":
		if u.Host != "" || u.Path == "" {
			return nil, errors.New("URL: write a socket as unix:///PATH")
		}
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", u.Path)
		}
	default:
		return nil, errors.New("URL: it begins with http://, https:// or unix:///")
	}
	if t != (TLS{}) && u.Scheme != "https" {
		return nil, errors.New("certificates need a URL that begins with https://")
	}
	var err error
	transport.TLSClientConfig, err = t.tlsConfig()
	return transport, err
}

func (t TLS) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s: no PEM certificate in it", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("a client certificate needs both its file and its key's file")
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// TokenSource returns the bearer token to send now; "" is none.
type TokenSource func() (string, error)

// Token returns a TokenSource for a constant token.
func Token(token string) TokenSource { return func() (string, error) { return token, nil } }

// TokenFile returns a TokenSource that reads a file for each call, so that a replaced token is used
// at once. It reads a pipe once, and cuts one newline off the end.
func TokenFile(path string) TokenSource {
	var mu sync.Mutex
	piped := ""
	return func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if piped != "" {
			return piped, nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read token file: %w", err)
		}
		token := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
		switch {
		case token == "":
			return "", fmt.Errorf("token file %s is empty", path)
		case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
			return "", fmt.Errorf("token file %s: a token is one line of visible ASCII characters without spaces", path)
		}
		if file, err := os.Stat(path); err == nil && !file.Mode().IsRegular() {
			piped = token
		}
		return token, nil
	}
}
