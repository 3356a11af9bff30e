package naming

import (
	"testing"

	"hooklock/idem"
)

func TestAHeaderThatLooksLikeACredentialIsOne(t *testing.T) {
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "X-Forwarded-Authorization", "Cookie", "X-Api-Key", "API-KEY", "ApiKey",
		"api_key", "X-Auth-Token", "X-Access-Token", "Access_Token", "X-Gitlab-Token", "X-Auth", "X-Secret",
		"X-Webhook-Secret", "Ocp-Apim-Subscription-Key", "X-Functions-Key", "X-Session-Id", "X-JWT-Assertion",
		"X-Amz-Security-Token", "X-Forwarded-User", "X-Remote-User", "X-Forwarded-Email", "X-Forwarded-Client-Cert",
		"SSL-Client-Cert", "password", "token", "AccessToken", "X-AuthToken", "ApiToken", "X-SharedSecret",
		"accessToken", "accesstoken", "ACCESSTOKEN", "sharedsecret", "X-APIKey", "APIKEY", "XApiKey",
		"JWTAssertion", "X-OAuthToken", "X-Token2", "clientSecret", "webhookPassword", "X-ForwardedUser",
		"phpsessionid", "X-WebhookSecretV2", "X-CsrfToken",
		"x-webhookkey", "x-masterkey", "x-clientkey", "x-hmackey", "X-Passcode", "X-Agent-Token", "X-AgentToken",
		"X-Authentik-Username", "X-Forwarded-Preferred-Username", "X-User-Name", "X-Login",
		"X-Remote-Login", "X-WebauthUsername",
		"X-Buildagent-Token", "X-User-Agent-Token",
	} {
		if !looksSecret([]byte(name)) {
			t.Errorf("%s is none", name)
		}
	}
	for _, name := range []string{ // what is new with each attempt, or tells nothing of who sends
		"Idempotency-Key", "I-Twilio-Idempotency-Token", "X-Hub-Signature-256", "Stripe-Signature", "X-Auth-Signature",
		"X-Token-Timestamp", "Sec-WebSocket-Key", "User-Agent", "User", "Username", "Login", "X-Username-Agent", "Key",
		"X-Key-Version", "Traceparent",
		"X-Request-Id", "X-GitHub-Delivery", "Content-Type", "Host", "Date", "X-Author", "X-Keyboard", "", "-",
		"From-Email-Agent",
		"IdempotencyKey", "X-AuthSignature", "tokenTimestamp", "tokensignature", "UserAgent", "Secretary",
		"Tokens-Used", "X-Monkey", "requestId", "webhookId", "Design", "X-Sessions",
	} {
		if looksSecret([]byte(name)) {
			t.Errorf("%s is one", name)
		}
	}
}

func TestWhatARouteNamesCountsAlsoBesideASignature(t *testing.T) {
	p := &idem.Policy{}
	p.Credentials = []string{"x-tenant"}
	m := func(lines ...string) *Message { return &Message{Fields: fields(lines...), Query: []byte("a=1")} }
	one := CredentialsDigest("exec_a", m("X-Tenant: 1"), p)
	if one == "" || one != CredentialsDigest("exec_a", m("x-tenant: 1", "X-Other: 2"), p) ||
		one == CredentialsDigest("exec_a", m("X-Tenant: 2"), p) {
		t.Error("X-Tenant does not count as it should")
	}
	p.Verified = true
	if got := CredentialsDigest("exec_a", m("X-Tenant: 1", "Authorization: other"), p); got != one {
		t.Error("beside a signature, something else than X-Tenant counts")
	}
}

func TestACredentialInTheQueryCounts(t *testing.T) {
	p := &idem.Policy{}
	digest := func(query string) string { return CredentialsDigest("exec_a", &Message{Query: []byte(query)}, p) }
	if digest("a=1&b=2") != "" || digest("") != "" {
		t.Error("parameters that are no credentials count")
	}
	seen := map[string]string{}
	for _, query := range []string{"token=a", "token=b", "api_key=a", "pass=a", "pwd=a", "code=a", "sig=a",
		"x=1&token=c", "token"} {
		d := digest(query)
		if other, twice := seen[d]; d == "" || twice {
			t.Errorf("%q is as %q: %q", query, other, d)
		}
		seen[d] = query
	}
}
