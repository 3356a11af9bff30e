package admin

import (
	"net/netip"
	"strings"
	"testing"
)

func TestOnlyATrustedProxyNamesThePerson(t *testing.T) {
	const release = "/v1/locks/w?execution=exec_0000000000000000000000000000000a&reason=stuck"
	proxy := Access{Tokens: rigTokens(), UserHeader: "X-Forwarded-User",
		UserHeaderFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	elsewhere := proxy
	elsewhere.UserHeaderFrom = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		access Access
		header []string
		who    string
		code   string
	}{
		"of the proxy": {proxy, []string{"X-Forwarded-User", "anna@example.com"}, "anna@example.com (ops)",
			"store_unavailable"},
		"without a person": {proxy, nil, "ops", "store_unavailable"},
		"from elsewhere": {elsewhere, []string{"X-Forwarded-User", "anna@example.com"}, "ops",
			"store_unavailable"},
		"without the setting": {Access{Tokens: rigTokens()}, []string{"X-Forwarded-User", "anna@example.com"}, "ops",
			"store_unavailable"},
		"another header": {proxy, []string{"X-User", "anna@example.com"}, "ops", "store_unavailable"},
		"too long":       {proxy, []string{"X-Forwarded-User", strings.Repeat("a", 129)}, "ops", "bad_request"},
		"no text":        {proxy, []string{"X-Forwarded-User", "an\tna"}, "ops", "bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, unreachable{}, func(o *Options) { o.Access = c.access })
			if got := r.ask("DELETE", release, opsToken, "", c.header...); got.code() != c.code {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
			if who := r.log.audit(t)["who"]; who != c.who {
				t.Errorf("who is %q, want %q", who, c.who)
			}
		})
	}
}
