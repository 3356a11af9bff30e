package etcdtest

import (
	"context"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// User and Password are of the etcd user that may touch the keys below the prefix that
// StartWithUsers was given, and nothing else.
const (
	User     = "hooklock"
	Password = "correct horse"

	root         = "root"
	rootPassword = "root's"

	cheapHash = 4 // the least that bcrypt takes: tests are not attacked
)

// StartWithUsers runs an etcd that asks for a user name and a password.
func StartWithUsers(tb testing.TB, prefix string) *Etcd {
	tb.Helper()
	e := startWith(tb, func(c *embed.Config) { c.BcryptCost = cheapHash }, nil)
	e.addUsers(tb, prefix)
	e.Client = dialClient(tb, clientv3.Config{Endpoints: []string{e.Endpoint}, Username: root, Password: rootPassword})
	return e
}

// StartWithCertificates runs an etcd that takes the common name of a client's certificate for the
// user; User may touch the keys below prefix, and nothing else.
func StartWithCertificates(tb testing.TB, a *Authority, prefix string) *Etcd {
	tb.Helper()
	server := a.Issue("etcd")
	e := startWith(tb, func(c *embed.Config) {
		c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = server.CertFile, server.KeyFile
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = a.CAFile, true
		c.BcryptCost = cheapHash
	}, a.Client(a.Issue(root)))
	e.addUsers(tb, prefix)
	return e
}

// addUsers does what docs/etcd.md tells an operator to do with etcdctl.
func (e *Etcd) addUsers(tb testing.TB, prefix string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := e.Client
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, root, rootPassword); return err },
		func() error { _, err := c.UserGrantRole(ctx, root, root); return err },
		func() error { _, err := c.RoleAdd(ctx, User); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, User, prefix+"/", clientv3.GetPrefixRangeEnd(prefix+"/"),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserAdd(ctx, User, Password); return err },
		func() error { _, err := c.UserGrantRole(ctx, User, User); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			tb.Fatal(err)
		}
	}
}

// ForgetTokens makes etcd refuse all tokens of User that it has given out, as a restart does, or
// five minutes without a request.
func (e *Etcd) ForgetTokens(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := e.Client.UserChangePassword(ctx, User, Password); err != nil {
		tb.Fatal(err)
	}
}
