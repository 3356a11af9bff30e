package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hooklock/admin"
	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
)

// adminFindings checks the access to the admin API: the token files, the certificates, and the
// answers of a running hooklock.
func adminFindings(ctx context.Context, c *config.Config, running bool) []diagnose.Finding {
	findings := append(tokenFindings(c), certificateFindings(c)...)
	if running {
		findings = append(findings, apiFinding(ctx, c))
		if f, says := reuseFinding(ctx, c); says {
			findings = append(findings, f)
		}
	}
	return findings
}

// tokenFindings checks the modes of the token files: each reader of a file can use its token.
func tokenFindings(c *config.Config) []diagnose.Finding {
	if len(c.Admin.Tokens) == 0 {
		return []diagnose.Finding{generatedFinding(c.DataDir)}
	}
	var findings []diagnose.Finding
	for _, t := range c.Admin.Tokens {
		f := diagnose.Finding{Check: "admin token " + t.Name, Result: diagnose.OK,
			Found: "from the environment variable " + t.TokenEnv}
		if t.TokenFile != "" {
			f = secretFinding("admin token "+t.Name, t.TokenFile, "hooklock's user")
		}
		findings = append(findings, f)
	}
	return findings
}

// generatedFinding checks the token that serve generates in dir.
func generatedFinding(dir string) diagnose.Finding {
	const check = "admin token"
	path := filepath.Join(dir, admin.TokenFile)
	err := admin.CheckLocalToken(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return diagnose.Finding{
			Check: check, Result: diagnose.OK,
			Found:  path + " will be made at the start, because admin.tokens is empty",
			Advice: "who can read it may change everything; reading needs no token",
		}
	case errors.Is(err, fs.ErrPermission):
		return diagnose.Finding{Check: check, Result: diagnose.Skipped, Found: err.Error(),
			Advice: "run doctor as the user of hooklock serve"}
	case err != nil:
		return diagnose.Finding{Check: check, Result: diagnose.Failed, Found: err.Error(),
			Advice: "a hooklock that starts with it takes no changes over its API"}
	}
	return secretFinding(check, path, "you")
}

// secretFinding checks a token file.
func secretFinding(check, path, who string) diagnose.Finding {
	f := diagnose.Finding{Check: check, Result: diagnose.Failed}
	info, err := os.Stat(path)
	if err != nil {
		f.Found, f.Advice = err.Error(), "make the file, or correct its name"
		return f
	}
	mode := info.Mode().Perm()
	f.Found = fmt.Sprintf("%s has mode %04o", path, mode)
	switch {
	case !info.Mode().IsRegular():
		f.Found, f.Advice = path+" is no file", "give a file with the token in its only line"
	case mode&0o007 != 0:
		f.Result, f.Advice = diagnose.Warning,
			"everybody on this machine may know the token: make a new one, and chmod 600 its file"
	default:
		f.Result = diagnose.OK
		if _, err := client.TokenFile(path)(); err != nil {
			f.Result, f.Found, f.Advice = diagnose.Failed, err.Error(), "it must be readable for "+who
			if !errors.Is(err, fs.ErrPermission) {
				f.Advice = "write the token into it, in one line"
			}
		}
	}
	return f
}

// certificateFindings checks each configured certificate of Hooklock: open connections outlive it,
// so nothing else shows its end.
func certificateFindings(c *config.Config) []diagnose.Finding {
	var findings []diagnose.Finding
	for _, o := range []struct{ of, certFile, keyFile string }{
		{"listen", c.Listen.TLS.CertFile, c.Listen.TLS.KeyFile},
		{"admin", c.Admin.TLS.CertFile, c.Admin.TLS.KeyFile},
		{"etcd", c.Etcd.TLS.CertFile, c.Etcd.TLS.KeyFile},
		{"upstream", c.Upstream.TLS.CertFile, c.Upstream.TLS.KeyFile},
		{"park_store.s3", c.ParkStore.S3.TLS.CertFile, c.ParkStore.S3.TLS.KeyFile},
	} {
		if o.certFile != "" {
			findings = append(findings, certificateFinding(o.of+" certificate", o.certFile, o.keyFile))
		}
	}
	return findings
}

// certificateFinding checks a certificate of Hooklock.
func certificateFinding(check, certFile, keyFile string) diagnose.Finding {
	f := diagnose.Finding{Check: check, Result: diagnose.OK}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		f.Result, f.Found, f.Advice = diagnose.Failed, err.Error(), "give a certificate and its key in PEM"
		return f
	}
	left := time.Until(pair.Leaf.NotAfter)
	f.Found = fmt.Sprintf("%s is valid until %s", certFile, cli.Zone{}.Stamp(pair.Leaf.NotAfter))
	switch {
	case left < 0:
		f.Result, f.Advice = diagnose.Failed, "renew it: clients refuse it"
	case left < soon:
		f.Result, f.Advice = diagnose.Warning, "renew it"
	}
	return f
}

// runningAdmin looks for a running hooklock at admin.listen.
func runningAdmin(ctx context.Context, c *config.Config) (f diagnose.Finding, is bool) {
	at := remote.AdminURL(c)
	if at == "" {
		return f, false
	}
	if c.Admin.TLS.CertFile == "" {
		return runningFinding(ctx, at, nil)
	}
	trust := wiring.OwnTrust(c)
	t, err := wiring.ClientTLS("admin.tls", &config.ClientTLS{CAFile: trust.CAFile, ServerName: trust.ServerName}, nil)
	if err != nil {
		return f, false
	}
	if c.Admin.TLS.ClientCAFile == "" {
		return runningFinding(ctx, at, t)
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 2 * time.Second}, Config: t}
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(at, "https://"))
	if err != nil {
		return f, false
	}
	_ = conn.Close()
	return diagnose.Finding{Check: "running hooklock", Result: diagnose.OK,
		Found: "shows the certificate of admin.tls at " + at}, true
}

// runningHealth looks for a running hooklock at health.listen.
func runningHealth(ctx context.Context, c *config.Config) (f diagnose.Finding, is bool) {
	at := remote.FromHere(c.Health.Listen)
	if at == "" {
		return f, false
	}
	return runningFinding(ctx, "http://"+at, nil)
}

// apiFinding gets one lock from the running hooklock, as the commands locks and executions do.
func apiFinding(ctx context.Context, c *config.Config) diagnose.Finding {
	f := diagnose.Finding{Check: "admin API " + remote.AdminURL(c), Result: diagnose.Failed}
	if c.Admin.TLS.ClientCAFile != "" {
		f.Result, f.Found, f.Advice = diagnose.Skipped, "it asks for a client certificate, which doctor does not have",
			"try hooklock locks list --cert-file … --key-file …"
		return f
	}
	api, name, err := ownAPI(c)
	if err != nil {
		f.Found = err.Error()
		return f
	}
	defer api.Close()
	_, err = api.LockPage(ctx, client.LockQuery{Limit: 1})
	var p *client.Problem
	switch {
	case err == nil:
		f.Result, f.Found = diagnose.OK, "it answers "+name
	case errors.As(err, &p) && p.Status == http.StatusUnauthorized:
		f.Found, f.Advice = "it does not know "+name, "reload it, or give this configuration the token that it has"
	case errors.As(err, &p) && p.Code == client.CodeStoreUnavailable:
		f.Result, f.Found, f.Advice = diagnose.Warning, p.Detail, "see the checks of etcd"
	case errors.As(err, &p) && p.Code == client.CodeNotFound:
		f.Result, f.Found, f.Advice = diagnose.Warning, "the running hooklock has no such API",
			"it is of another release: restart it with this one"
	default:
		f.Found, f.Advice = cli.Plain(err.Error()), "its log says more"
	}
	return f
}

// ownAPI returns a client of the running hooklock, and the description of the token that it has.
func ownAPI(c *config.Config) (*client.Client, string, error) {
	token, name := readingToken(c)
	api, err := client.New(client.Options{URL: remote.AdminURL(c), Token: token, Timeout: 3 * time.Second,
		TLS: wiring.OwnTrust(c)})
	return api, name, err
}

// readingToken returns a token with the scope read, and its description.
func readingToken(c *config.Config) (client.TokenSource, string) {
	for _, t := range c.Admin.Tokens {
		if secret := t.Token.Reveal(); secret != "" && slices.Contains(t.Scopes, config.ScopeRead) {
			return client.Token(secret), "the token " + t.Name
		}
	}
	path := filepath.Join(c.DataDir, admin.TokenFile)
	if _, err := client.TokenFile(path)(); err == nil && len(c.Admin.Tokens) == 0 {
		return client.TokenFile(path), "the token in " + path
	}
	return nil, "without a token"
}
