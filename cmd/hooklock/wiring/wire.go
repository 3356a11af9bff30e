package wiring

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
	"hooklock/etcdlock"
	"hooklock/etcdlock/embedded"
	"hooklock/etcdlock/predecessor"
	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
	"hooklock/proxy/asking"
	"hooklock/proxy/requests"
	"hooklock/proxy/sender"
	"hooklock/proxy/telemetry"
	"hooklock/proxy/wire"
)

// Load reads the configuration and checks it against what is known of senders.
func Load(e *cli.Environment, path string, text []byte, needFiles bool) (*config.Loaded, error) {
	loaded, err := config.Load(config.Source{
		Path: path, Bytes: text, Env: e.Env, NeedFiles: needFiles,
		Senders: knownSenders(), CheckRoute: checkRoute,
		CheckKeys: func(text string) error { _, err := requests.ParseKeys(text); return err },
	})
	if err != nil {
		return nil, cli.Misuse(err)
	}
	return loaded, nil
}

// Check builds what serve would build of a configuration, and returns what is wrong as
// config.Problems with their places. files says whether it reads the certificates.
func Check(loaded *config.Loaded, files bool) error {
	c := loaded.Config
	_, rules := NewRules(c)
	errs := []error{rules}
	if rules == nil && files {
		_, _, upstream := UpstreamOptions(c, nil)
		_, store := StoreOptions(c, nil)
		_, door := ServerTLS("listen.tls", &c.Listen.TLS, nil)
		_, admin := AdminTLS(&c.Admin.TLS, nil)
		_, requests := ParkStore(c, nil)
		errs = append(errs, upstream, store, door, admin, requests)
	}
	var problems config.Problems
	for _, err := range errs {
		if err != nil {
			problems = append(problems, loaded.Locate(problemOf(err)))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return cli.Misuse(problems)
}

// problemOf returns an error that begins with the setting that it is about, if it does.
func problemOf(err error) config.Problem {
	if setting, text, found := strings.Cut(err.Error(), ": "); found && settingName.MatchString(setting) {
		return config.Problem{Path: setting, Text: text}
	}
	return config.Problem{Text: err.Error()}
}

var settingName = regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)*$`)

// NewRules builds what a reload replaces.
func NewRules(c *config.Config) (*proxy.Rules, error) {
	rules := &proxy.Rules{
		Table: proxy.Table{RejectUnmatched: c.Unmatched == config.UnmatchedReject},
		Limits: proxy.Limits{
			RequestBody: int(c.Limits.RequestBody), HeadTimeout: c.Limits.HeaderTimeout,
			BodyTimeout: c.Limits.BodyTimeout,
			Progress:    int(c.Limits.Progress),
		},
	}
	for i := range c.Routes {
		route, err := newRoute(&c.Routes[i], c.Upstream.Timeout)
		if err != nil {
			return nil, cli.Misuse(fmt.Errorf("routes[%d]: %w", i, err))
		}
		if p := route.Policy.Park; p != nil && !c.KeepsLong() {
			p.MaxBytes = int(c.ParkStore.Inline)
		}
		rules.Table.Routes = append(rules.Table.Routes, route)
	}
	return rules, nil
}

func newRoute(c *config.Route, upstream time.Duration) (*proxy.Route, error) {
	pattern, err := proxy.ParsePattern(c.Match.Path)
	if err != nil {
		return nil, err
	}
	spec := naming.KeySpec{
		Route: c.Name, Workflow: c.Workflow, EventID: c.EventID, Missing: c.OnMissingEventID, Open: leftOpen(c),
		Uses:       c.Uses,
		Labels:     c.Labels.Used(),
		Ignore:     c.Ignore,
		PerRequest: c.Idempotency.OnMismatch == idem.MismatchExecute,
		SameEvent:  c.Twins.Mode == config.TwinsSame,
	}
	if c.Idempotency.OnUnknown == idem.UnknownAsk {
		spec.Question = c.Ask.URL
	}
	if !c.Idempotency.Enabled { // every delivery is its own event: its ID is not read
		spec.EventID, spec.Missing = "", naming.MissingPayload
	}
	preset := presetOf(c)
	order := orderPolicy(c, preset, &spec)
	if spec.EventID == naming.EventIDOfPreset {
		spec.EventID, spec.Extract = "", preset.Extractor()
	}
	keys, err := naming.NewKeys(spec)
	if err != nil {
		return nil, err
	}
	verification, err := newVerification(c)
	if err != nil {
		return nil, err
	}
	r := &proxy.Route{
		Name: c.Name, Former: c.FormerNames, Pattern: pattern, Methods: c.Match.Methods, Hosts: c.Match.Hosts,
		Verify: verification, Keys: keys, Policy: newPolicy(c, upstream),
		Forward: c.OnStoreDown == config.StoreDownForward, Digest: c.Digest,
		ParkNearLimit: c.OnSenderLimit == config.SenderLimitPark, Observe: c.Mode == config.ModeObserve,
		Respond: map[idem.Decision]int{}, Ask: askRule(c), KeepRequests: c.Requests.Keep,
	}
	r.Policy.Order = order
	switch c.Twins.Mode {
	case config.TwinsReport:
		r.TwinWindow = c.Twins.Window
	case config.TwinsSame:
		r.Policy.TwinWindow = c.Twins.Window
	}
	if c.Park.Enabled && c.Park.Signature == idem.SignatureRenew && c.Verify.Complete() {
		if r.Renewer, err = sender.NewRenewer(signatureConfig(&c.Verify)); err != nil {
			return nil, fmt.Errorf("park.signature: %w", err)
		}
	} else if renewal, tolerance := sender.RenewalOf(signatureConfig(&c.Verify)); renewal != sender.RenewalNeedless {
		r.SignatureAge = tolerance
	}
	if preset != nil {
		r.RetryAfterUnit = preset.RetryAfterUnit
	}
	for decision, status := range c.Respond {
		if decision == config.RespondAsked {
			continue // see askPolicy
		}
		r.Respond[idem.Decision(decision)] = status
	}
	return r, nil
}

func newPolicy(c *config.Route, upstream time.Duration) idem.Policy {
	p := idem.Policy{
		Route: c.Name, Strategy: c.Lock.Strategy, Concurrency: c.Lock.Limit, MaxDuration: c.Lock.MaxDuration,
		ReleaseDelay: c.Lock.ReleaseDelay,
		WaitTimeout:  c.Lock.WaitTimeout, MaxWaiting: c.Lock.MaxWaiting, InFlight: c.Idempotency.InFlight,
		AttachTimeout: upstream + c.Lock.WaitTimeout, Quiet: c.Lock.Quiet, MaxWait: c.Lock.MaxWait,
		Idempotency: c.Idempotency.Enabled, Retention: c.Idempotency.Retention,
		PayloadRetention: c.Idempotency.PayloadRetention,
		NewPerSecond:     c.Idempotency.NewPerSecond, ReplayBody: int(c.Idempotency.ReplayBody),
		ReplayRetention: c.Idempotency.ReplayRetention, OnMismatch: onMismatch(c.Idempotency.OnMismatch),
		OnUnknown: c.Idempotency.OnUnknown, Attempts: c.Idempotency.Attempts, HoldTTL: c.Hold.TTL,
		Verified: c.Verify.Scheme != config.SchemeNone,
		Observe:  c.Mode == config.ModeObserve, Park: parkPolicy(&c.Park), Ask: askPolicy(c),
	}
	for _, name := range c.Idempotency.Credentials {
		p.Credentials = append(p.Credentials, strings.ToLower(name))
	}
	for _, r := range c.Idempotency.Keep {
		p.Keep.Add(r.Low, r.High)
	}
	for _, r := range c.Idempotency.Unknown {
		p.Unknown.Add(r.Low, r.High)
	}
	for _, r := range c.Hold.OnStatus {
		p.HoldOn.Add(r.Low, r.High)
	}
	return p
}

// orderPolicy returns nil if the route has no order; otherwise spec says what it is read from.
func orderPolicy(c *config.Route, preset *sender.Preset, spec *naming.KeySpec) *idem.OrderPolicy {
	if !c.Order.Asked() {
		return nil
	}
	spec.OrderBy, spec.OrderScope, spec.OrderUnit = c.Order.By, c.Order.Scope, c.Order.Unit
	if c.Order.Preset && preset != nil {
		spec.OrderBy, spec.OrderUnit = preset.Order, preset.OrderUnit
	}
	return &idem.OrderPolicy{OnStale: c.Order.OnStale, By: spec.OrderBy}
}

// Limits returns how many slots the limits of c have; see etcdlock.Options.
func Limits(c *config.Config) func(route string, slot idem.Slot) int {
	shared := maps.Clone(c.Limits.Shared)
	own := map[string]int{}
	for i := range c.Routes {
		for _, name := range append([]string{c.Routes[i].Name}, c.Routes[i].FormerNames...) {
			own[name] = c.Routes[i].Lock.Limit // 1: for those that began to wait when it was more
		}
	}
	return func(route string, slot idem.Slot) int {
		if slot.Rule == "" {
			return own[route]
		}
		return shared[slot.Rule]
	}
}

// onMismatch converts the setting. Whether a replay is unsigned matters to the configuration alone.
func onMismatch(c idem.OnMismatch) idem.OnMismatch {
	if c == idem.MismatchReplayUnsigned {
		return idem.MismatchReplay
	}
	return c
}

// tlsSessions is how many TLS sessions with the upstream are remembered: a server gives a ticket or
// two to each connection, for one use.
const tlsSessions = 64

// UpstreamOptions returns how the upstream is called, and the Host of requests that have none. log
// is as for ClientTLS.
func UpstreamOptions(c *config.Config, log *slog.Logger) (o wire.Options, host string, err error) {
	u, err := url.Parse(c.Upstream.URL)
	if err != nil {
		return o, "", cli.Misuse(fmt.Errorf("upstream.url: %w", err))
	}
	o = wire.Options{
		Network: "tcp", Addr: u.Host, ConnectTimeout: c.Upstream.ConnectTimeout, MaxIdle: 256,
		MaxResponseBody: int(c.Limits.ResponseBody), RequestBuffer: int(c.Limits.RequestBuffer),
	}
	switch u.Scheme {
	case "unix":
		o.Network, o.Addr = "unix", u.Path
		return o, "localhost", nil
	case "https":
		if o.TLS, err = ClientTLS("upstream.tls", &c.Upstream.TLS, log); err != nil {
			return o, "", err
		}
		o.TLS.ServerName = cmp.Or(o.TLS.ServerName, u.Hostname())
		// a new connection resumes the session of an earlier one
		o.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(tlsSessions)
	}
	o.Addr = config.WithPort(u)
	return o, u.Host, nil
}

// Reuse returns the meaning of upstream.reuse_after_body for the connections of deliveries.
func Reuse(r config.Reuse) wire.Reuse {
	switch r {
	case config.ReuseAlways:
		return wire.ReuseAlways
	case config.ReuseAuto:
		return wire.ReuseKnown
	}
	return wire.ReuseNever
}

// TelemetryOptions returns the names of the process and its service. The standard variables of
// OpenTelemetry, which its SDK reads, say what is exported.
func TelemetryOptions(c *config.Config, log *slog.Logger) (telemetry.Options, error) {
	o := telemetry.Options{Log: log, Env: os.Getenv, Setenv: os.Setenv, Version: cli.BuildVersion(),
		Instance: holderName()}
	u, err := url.Parse(c.Upstream.URL)
	if err != nil {
		return o, cli.Misuse(fmt.Errorf("upstream.url: %w", err))
	}
	if o.UpstreamHost = u.Path; u.Scheme != "unix" {
		o.UpstreamHost, o.UpstreamPort, err = net.SplitHostPort(config.WithPort(u))
	}
	return o, err
}

// EmbeddedOptions returns the options of the embedded etcd.
func EmbeddedOptions(c *config.Config, log *slog.Logger) embedded.Options {
	return embedded.Options{Dir: filepath.Join(c.DataDir, "etcd"), Quota: int64(c.Etcd.Embedded.Quota), Logger: log}
}

// ProcessDir returns the directory for the files of processes on an etcd cluster; "" = there is
// none, because data_dir is empty.
func ProcessDir(c *config.Config) string {
	if c.DataDir == "" {
		return ""
	}
	return filepath.Join(c.DataDir, predecessor.Folder)
}

// StoreOptions returns the options of the ledger.
func StoreOptions(c *config.Config, log *slog.Logger) (etcdlock.Options, error) {
	o := etcdlock.Options{
		Endpoints: c.Etcd.Endpoints, Username: c.Etcd.Username, Password: c.Etcd.Password.Reveal(),
		Prefix: c.Etcd.Prefix, SessionTTL: c.Etcd.SessionTTL, RequestTimeout: c.Etcd.RequestTimeout,
		Holder: holderName(),
		Logger: log,
	}
	for _, endpoint := range c.Etcd.Endpoints {
		if strings.HasPrefix(endpoint, "https://") || c.Etcd.TLS != (config.ClientTLS{}) {
			t, err := ClientTLS("etcd.tls", &c.Etcd.TLS, log)
			if err != nil {
				return o, err
			}
			o.TLS = t
			break
		}
	}
	return o, nil
}

// holderName returns the name of this process for operators.
func holderName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// OwnTrust returns a trust in the configured certificate alone, under its own name: it proves that
// the listener has it.
func OwnTrust(c *config.Config) client.TLS {
	if c.Admin.TLS.CertFile == "" {
		return client.TLS{}
	}
	return client.TLS{CAFile: c.Admin.TLS.CertFile, ServerName: nameIn(c.Admin.TLS.CertFile)}
}

// DefaultConfig is the file that commands read without --config.
const DefaultConfig = "sidecar.yaml"

// nameIn returns a name of the first certificate in a PEM file, or "".
func nameIn(certFile string) string {
	text, err := os.ReadFile(certFile)
	if err != nil {
		return ""
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return ""
	case len(leaf.DNSNames) > 0:
		return strings.Replace(leaf.DNSNames[0], "*", "any", 1)
	case len(leaf.IPAddresses) > 0:
		return leaf.IPAddresses[0].String()
	}
	return ""
}

// askPolicy returns how a route asks the service what became of an event of unknown outcome; nil:
// it does not.
func askPolicy(c *config.Route) *idem.AskPolicy {
	if c.Idempotency.OnUnknown != idem.UnknownAsk || c.Ask.URL == "" {
		return nil
	}
	return &idem.AskPolicy{
		After: max(c.Ask.After, c.Lock.ReleaseDelay), Attempts: c.Ask.Attempts,
		Answer: cmp.Or(c.Respond[config.RespondAsked], http.StatusOK),
	}
}

// askRule returns how the answers are understood; nil: the route does not ask.
func askRule(c *config.Route) *asking.Rule {
	if askPolicy(c) == nil {
		return nil
	}
	return &asking.Rule{Executed: replyOf(&c.Ask.Executed), NotExecuted: replyOf(&c.Ask.NotExecuted),
		Authorization: c.Ask.Authorization.Reveal()}
}

func replyOf(c *config.Reply) asking.Reply {
	r := asking.Reply{Body: c.Body}
	for _, s := range c.Status {
		r.Status.Add(s.Low, s.High)
	}
	return r
}

// Service returns how questions reach the upstream.
func Service(o *wire.Options, host string) asking.Service {
	return asking.Service{Network: o.Network, Addr: o.Addr, Host: host, TLS: o.TLS, Connect: o.ConnectTimeout}
}
