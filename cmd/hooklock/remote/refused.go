package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
)

// explainError converts an error of a call to a message that says what to do, with an exit code.
// Text of the server is made plain.
func (d *Desk) explainError(ctx context.Context, err error) error {
	var coded cli.CodedError
	var file *fs.PathError // a token file that has gone, or a full disk under the output
	if err == nil || errors.As(err, &coded) || errors.As(err, &file) {
		return err
	}
	var half doubt
	errors.As(err, &half)
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return d.refusalError(p, half.adviceText())
	}
	if ctx.Err() != nil {
		return errors.New("interrupted" + half.adviceText())
	}
	text := cli.Plain(d.url) + ": " + cli.Plain(err.Error())
	if advice := d.adviceFor(err); advice != "" {
		text += "; " + advice
	}
	return errors.New(text + half.adviceText())
}

// doubt is an error after which it is not known whether a change was made.
type doubt struct {
	error
	look string // the command that shows it
}

// Unwrap returns the wrapped error.
func (e doubt) Unwrap() error { return e.error }

func (e doubt) adviceText() string {
	if e.look == "" {
		return ""
	}
	return "; it may have been done all the same: " + cli.Plain(e.look) + " tells"
}

// withDoubt wraps the error of a change. There is no doubt if the server answered for etcd, too, or
// was not reached.
func withDoubt(err error, look string) error {
	var p *client.Problem
	var dial *net.OpError
	if errors.As(err, &p) && p.Code != client.CodeStoreUnavailable || errors.As(err, &dial) && dial.Op == "dial" {
		return err
	}
	return doubt{err, look}
}

// PrintResult prints the result of a change: the answer of the server, or text.
func (d *Desk) PrintResult(answer []byte, text string) error {
	return d.printObject(answer, func() error {
		_, err := fmt.Fprintln(d.environment.Stdout, cli.Plain(text))
		return err
	})
}

// refusalError converts a problem to an error with an exit code and an advice. look says where to
// look after a change.
func (d *Desk) refusalError(p *client.Problem, look string) error {
	text := cli.Plain(p.Error())
	code := cli.ExitFailed
	switch {
	case p.Code == "":
		text = cli.Plain(d.url) + ": " + text + "; name Hooklock's admin listener with --admin"
		if p.Status == http.StatusBadRequest {
			text += " (one with TLS begins with https://)"
		}
	case p.Status == http.StatusUnauthorized:
		text += "; " + d.token
	case p.Status == http.StatusForbidden:
		text += "; " + d.token + "; its scopes are in admin.tokens of the server"
	case p.Status == http.StatusMisdirectedRequest:
		text += "; ask by its IP address with --admin, or add the name to admin.hosts of the server"
	case p.Code == client.CodeLockNotFound, p.Code == client.CodeExecutionNotFound, p.Code == client.CodeNoEmbeddedEtcd,
		p.Code == client.CodeRequestNotKept,
		p.Code == client.CodeAnswerNotKept, p.Code == client.CodePauseNotFound, p.Code == client.CodeMarkNotFound,
		p.Code == client.CodeJobNotFound:
		code = cli.ExitNotFound
	case p.Status == http.StatusNotFound, p.Status == http.StatusMethodNotAllowed, p.Status == http.StatusBadGateway:
		text = cli.Plain(d.url) + ": " + text + "; this is no admin listener (admin.listen), or one of another release"
	case p.Code == client.CodeAlreadyFinished, p.Status == http.StatusConflict,
		p.Status == http.StatusPreconditionFailed:
		code = cli.ExitRefused
		if p.Code == client.CodeLockLost && p.ExecutionID != "" {
			text += "; the holder is " + cli.Plain(p.ExecutionID)
		}
	case p.Code == client.CodeConfigRefused:
		text, code = "the configuration was refused, and the old one stays", cli.ExitUsage
		for _, problem := range p.Problems {
			text += "\n" + cli.Plain(problem)
		}
	case p.Status == http.StatusBadRequest:
		code = cli.ExitUsage
	}
	if p.RetryAfter > 0 && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable) {
		text += fmt.Sprintf("; try again in %s", cli.Span(p.RetryAfter))
	}
	return cli.WithCode(errors.New(text+look), code)
}

// adviceFor says what to do if no answer came.
func (d *Desk) adviceFor(err error) string {
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var alert *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return "no hooklock listens there: start it (hooklock serve), or name its admin listener with --admin or " +
			envAdmin
	case errors.As(err, &dns):
		return "correct --admin or " + envAdmin
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time: is it the admin listener, and is a firewall between?"
	case errors.As(err, &authority):
		return "name the authority of its certificate with --ca-file"
	case errors.As(err, &name):
		return "ask by a name that is in its certificate"
	case errors.As(err, &alert) && alert.Op == "remote error": // a TLS alert (crypto/tls does not export its type)
		return "it asks for a client certificate: give --cert-file and --key-file"
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "it speaks no TLS: begin --admin with http://"
	}
	return ""
}
