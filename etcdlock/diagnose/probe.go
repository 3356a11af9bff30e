package diagnose

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
)

// preface is the beginning of an HTTP/2 connection (RFC 9113 §3.4), with an empty SETTINGS frame.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// probeEndpoint connects to an endpoint up to the first bytes of HTTP/2. The etcd client would try
// until its time is up, and then know no more than that.
func probeEndpoint(ctx context.Context, endpoint string, t *tls.Config) (advice string, err error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	address, secure := endpointAddress(endpoint, t != nil)
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "start this member, or correct etcd.endpoints; where it runs, something between drops the connection",
			fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // fails where the connection is closed, and then so does what follows
	if secure {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if t != nil {
			config = t.Clone()
		}
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(address)
		}
		config.NextProtos = []string{"h2"}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return adviceForTLS(err), fmt.Errorf("TLS handshake: %w", err)
		}
		conn = secured
	}
	// With TLS 1.3 a client learns with the first byte whether its certificate was taken.
	if _, err = io.WriteString(conn, preface); err == nil {
		frame := make([]byte, 9)
		if _, err = io.ReadFull(conn, frame); err == nil && frame[3] != 4 { // SETTINGS
			err = errors.New("what answers does not speak gRPC")
		}
	}
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "it accepts connections and does not answer: check whether the process is frozen or its disk hangs",
			fmt.Errorf("speak to it: %w", err)
	case secure:
		return adviceForTLS(err), fmt.Errorf("speak to it: %w", err)
	}
	return "is this etcd's client port? Where it wants TLS, write https://", fmt.Errorf("speak to it: %w", err)
}

// endpointAddress returns the address of an endpoint, and whether it speaks TLS.
func endpointAddress(endpoint string, haveTLS bool) (address string, secure bool) {
	u, err := url.Parse(endpoint)
	if !strings.Contains(endpoint, "://") || err != nil {
		return endpoint, haveTLS
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme]),
			u.Scheme == "https"
	}
	return u.Host, u.Scheme == "https"
}

// adviceForTLS says which setting a failed handshake is about.
func adviceForTLS(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "set etcd.tls.ca_file to the authority that signed etcd's certificate"
	case errors.As(err, &host):
		return "set etcd.tls.server_name to a name in etcd's certificate, or use such a name in etcd.endpoints"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew etcd's certificate, or set this machine's clock"
	case errors.As(err, &record), errors.Is(err, io.EOF):
		return "if this endpoint speaks no TLS, write http://; else etcd's log says why it refused the connection"
	case strings.Contains(err.Error(), "certificate required"), strings.Contains(err.Error(), "bad certificate"),
		strings.Contains(err.Error(), "unknown certificate authority"):
		return "etcd wants a client certificate that its --trusted-ca-file has signed: set etcd.tls.cert_file and " +
			"key_file"
	}
	return "look at etcd's log: it says why it refused the connection"
}
