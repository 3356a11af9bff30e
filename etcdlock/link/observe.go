package link

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// Operation is one request to etcd, as its caller saw it.
type Operation struct {
	// as etcd's API calls it: txn, range, delete_range, lease_grant, lease_revoke,
	// lease_keep_alive, lease_time_to_live or authenticate
	Name string
	// Host and Port of the member as configured; empty for an etcd in this process.
	Host, Port string
	Took       time.Duration
	// Code is how it failed, in the spelling of gRPC, as "DEADLINE_EXCEEDED"; empty when it did
	// not.
	Code string
	// Why says in words why there was no answer, as "no connection to etcd at …: connection
	// refused"; empty when there was one.
	Why string
}

// The Codes of a request that this process has cancelled itself, and of one about a lease that has
// ended, which is an answer like any other.
const (
	CodeCancelled = "CANCELLED"
	CodeNotFound  = "NOT_FOUND"
)

// The names of requests.
const (
	opTxn          = "txn"
	opRange        = "range"
	opDelete       = "delete_range"
	opGrant        = "lease_grant"
	opRenew        = "lease_keep_alive"
	opRevoke       = "lease_revoke"
	opTimeToLive   = "lease_time_to_live"
	opAuthenticate = "authenticate"
)

// measureRequest runs one request to the member, and reports it.
func (m *member) measureRequest(name string, request func() error) error {
	if m.report == nil {
		return request()
	}
	since := time.Now()
	err := request()
	op := Operation{Name: name, Host: m.host, Port: m.port, Took: time.Since(since), Code: codeOf(err)}
	if silent, is := errors.AsType[*errSilent](err); is {
		op.Why = silent.text
	}
	m.report(op)
	return err
}

// codeOf returns how a request failed. The codes of gRPC are a closed set, whatever the error says.
func codeOf(err error) string {
	var coded interface{ Code() codes.Code }
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return codeName(codes.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return codeName(codes.Canceled)
	case errors.As(err, &coded): // what etcd's own client makes of it
		return codeName(coded.Code())
	}
	return codeName(grpcstatus.Code(err))
}

// codeName converts DeadlineExceeded to DEADLINE_EXCEEDED, as the conventions for telemetry have
// it.
func codeName(c codes.Code) string {
	if c > codes.Unauthenticated { // no such code
		c = codes.Unknown
	}
	if c == codes.Canceled {
		return CodeCancelled // in Go it has one l
	}
	return strings.ToUpper(snakeCase(c.String()))
}

// snakeCase converts LeaseKeepAlive to lease_keep_alive.
func snakeCase(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// HostPort splits an endpoint as Operation does.
func HostPort(endpoint string) (host, port string) {
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		return u.Hostname(), u.Port()
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return endpoint, ""
	}
	return host, port
}
