package config

import (
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// The comment of each field is also its description in the JSON Schema. A field's zero value means
// what its comment says; where it says nothing, zero is refused.

// Config is the whole of sidecar.yaml, with every default filled in.
type Config struct {
	// Version of this file's format. Default and only value: 1.
	ConfigVersion int `koanf:"config_version"`
	// Where senders or the ingress reach Hooklock. Default 127.0.0.1:8080. The address alone is the
	// short form.
	Listen Listen `koanf:"listen" short:"address"`
	// Folder of the embedded etcd and of the generated admin token, made with mode 0700. Beside an
	// etcd cluster, a process that is started on the same folder frees at once the locks that a
	// killed one had, if the folder is on a local disk. Default ./hooklock-data.
	DataDir string `koanf:"data_dir"`
	// The service that deliveries are for. The URL alone is the short form.
	Upstream Upstream `koanf:"upstream" short:"url"`
	// What happens to requests that match no route: pass streams them through (an Upgrade is
	// tunnelled), reject answers 404. Default pass; reject as soon as a route checks signatures
	// (verify) and enforces.
	Unmatched Unmatched `koanf:"unmatched" reload:"true"`
	// Bounds on what one sender, one connection or all of them may use.
	Limits Limits `koanf:"limits"`
	// How long /readyz says 503 while deliveries are still accepted, so that load balancers notice
	// before the listener closes. Default 0s: the listener closes at once.
	ShutdownDelay time.Duration `koanf:"shutdown_delay"`
	// How long running deliveries may take to end after the listener is closed. Default 40s.
	// Executions that still run then are given up, with an unknown outcome.
	ShutdownTimeout time.Duration `koanf:"shutdown_timeout"`
	// Where locks and records are kept.
	Etcd Etcd `koanf:"etcd"`
	// Where the bytes of parked requests are kept. It is used where a route parks.
	ParkStore ParkStore `koanf:"park_store"`
	// The admin API.
	Admin Admin `koanf:"admin"`
	// A listener for kubelet and Prometheus, without the API.
	Health Health `koanf:"health"`
	// What is written to standard error.
	Log Log `koanf:"log"`
	// Messages to people about what needs attention.
	Notify Notify `koanf:"notify"`
	// Which deliveries are guarded, and how. Tried in the order of this file; the first match wins.
	// Default none: nothing is guarded.
	Routes []Route `koanf:"routes"`
}

// Listen is the listener for deliveries.
type Listen struct {
	// host:port, or unix:///path for a socket with mode 0660. Default 127.0.0.1:8080. An empty host
	// means every address of the machine; port 0 picks a free one.
	Address string `koanf:"address"`
	// Certificate of the listener. Default none: plain HTTP.
	TLS ServerTLS `koanf:"tls"`
}

// ServerTLS is the certificate of a listener. The zero value means plain text.
type ServerTLS struct {
	// Certificate chain, PEM. Default empty: no TLS.
	CertFile string `koanf:"cert_file" empty:"the listener would speak plain HTTP"`
	// Private key of cert_file, PEM. Default empty: no TLS.
	KeyFile string `koanf:"key_file"`
}

// ClientTLS says how a server is verified, and which certificate it is shown. The zero value
// verifies with the system's roots and shows no certificate.
type ClientTLS struct {
	// Certificates, PEM, that the server's certificate must lead to. Default empty: the system's
	// roots.
	CAFile string `koanf:"ca_file"`
	// Certificate chain, PEM, for servers that ask for one. Default empty: none.
	CertFile string `koanf:"cert_file"`
	// Private key of cert_file, PEM. Default empty: none.
	KeyFile string `koanf:"key_file"`
	// Name that the server's certificate must have. Default empty: the host of its URL.
	ServerName string `koanf:"server_name"`
}

// Upstream is the service behind Hooklock.
type Upstream struct {
	// http://host:port, https://host:port or unix:///path. Default http://127.0.0.1:8081. It has no
	// path: the request target goes through as it came.
	URL string `koanf:"url"`
	// Time for a whole answer, from the first byte sent to the last received. Default 30s. Past it
	// the outcome is unknown.
	Timeout time.Duration `koanf:"timeout"`
	// Time to connect, TLS handshake included. Default 1s. Past it nothing was sent, and the event
	// may run again.
	ConnectTimeout time.Duration `koanf:"connect_timeout"`
	// Whether a connection is used again after it carried a request with a body: auto, true or
	// false. Default auto: behind the answers of a server that is known to read or drop each body,
	// nginx or Apache httpd by its Server header; `hooklock status` says what is known. true is for
	// another service that reads each body to its end: `hooklock doctor --upstream PATH` finds out.
	// With false, each body goes over a new connection. For requests that match no route, true
	// means auto.
	ReuseAfterBody Reuse `koanf:"reuse_after_body"`
	// How an https upstream is verified.
	TLS ClientTLS `koanf:"tls"`
}

// Limits are bounds. A flood meets them as 413, 429, 431 or a closed connection, not as used
// memory.
type Limits struct {
	// Longest request body on routes; longer is 413. Default 8MiB.
	RequestBody Size `koanf:"request_body" reload:"true"`
	// Longest answer that is read whole before its first byte goes out; a longer one is streamed.
	// Default 8MiB.
	ResponseBody Size `koanf:"response_body"`
	// Longest request head; longer is 431. Default 16KiB, at least 4KiB.
	RequestHeader Size `koanf:"request_header"`
	// Time for a whole request head, from its first byte. Default 10s.
	HeaderTimeout time.Duration `koanf:"header_timeout"`
	// Time for a whole request body; on an unmatched path for each progress of it. Default 30s.
	BodyTimeout time.Duration `koanf:"body_timeout" reload:"true"`
	// What all bodies and kept answers may take in memory at one time; past it 503, and a quarter
	// of it is for bodies up to 64KiB alone. Default 0B: half of GOMEMLIMIT, or of nine tenths of
	// the cgroup's limit, or a quarter of the machine's memory.
	Memory Size `koanf:"memory" reload:"true"`
	// How much of a body on an unmatched path is read before a connection of the upstream is taken.
	// Default 1MiB. What follows is passed on as it comes.
	RequestBuffer Size `koanf:"request_buffer"`
	// Memory in which the newest deliveries are known by hashes of their members, for hooklock
	// suggest. Default 8MiB, at least 64KiB. 0B: nothing is learned.
	Suggestions Size `koanf:"suggestions"`
	// How much a sender must send in body_timeout of a body on an unmatched path, and take in
	// write_timeout of an answer; a slower one is cut off. Default 64KiB.
	Progress Size `koanf:"progress"`
	// How long a sender may take for each progress of an answer. Default 30s.
	WriteTimeout time.Duration `koanf:"write_timeout"`
	// How long the upstream may be silent in the middle of an answer on an unmatched path. Default
	// 10m.
	StreamTimeout time.Duration `koanf:"stream_timeout"`
	// How long a connection without a request stays open. Default 75s.
	IdleTimeout time.Duration `koanf:"idle_timeout"`
	// Connections from senders at one time; fewer where the limit on open files has no room for two
	// files each. Past it, the one that is without a request for longest is closed, and where each
	// has one, a new one gets 503. Default 10000.
	MaxConnections int `koanf:"max_connections"`
	// Deliveries that wait for a lock at one time, over all workflows of this process. Default
	// 2000.
	Waiting int `koanf:"waiting" reload:"true"`
	// How many executions may run at one time over all workflows, routes and replicas, by names
	// that routes say in uses: {erp: 20}. A name with sources of a template is a limit for each
	// value: {"tenant/{path.account}": 5}. Default none.
	Shared SharedLimits `koanf:"shared" reload:"true"`
	// What may be parked at one time. Past it deliveries are refused, as they are without park.
	Parked ParkedLimits `koanf:"parked"`
	// How much of what requests.keep keeps is there at one time. Past it the oldest requests are
	// deleted.
	Kept KeptLimits `koanf:"kept"`
}

// LeastMemory returns the memory in which a body of the greatest length has room if it is alone: a
// quarter is for small ones.
func (l *Limits) LeastMemory() Size { return (l.RequestBody*4 + 2) / 3 }

// Etcd is the store of locks and records.
type Etcd struct {
	// Client URLs (http://host:2379, https://…) or host:port. Default none: an embedded etcd with
	// one member under data_dir, for one replica.
	Endpoints []string `koanf:"endpoints" empty:"each replica would have an etcd and locks of its own"`
	// The etcd inside this process. It runs where endpoints is empty.
	Embedded Embedded `koanf:"embedded"`
	// What every key begins with. Default /hooklock. Installations with different prefixes do not
	// see each other.
	Prefix string `koanf:"prefix"`
	// A dead sidecar frees its locks after this. Default 15s; 2s to 10m, whole seconds.
	SessionTTL time.Duration `koanf:"session_ttl"`
	// Time for etcd to answer; then the decision is store_unavailable. Default 2s. A read gets a
	// third of it, at least 700ms and at most 3.5s; a transaction gets half, at least 1s and at
	// most 5s: where etcd is far away, set five round trips.
	RequestTimeout time.Duration `koanf:"request_timeout"`
	// User name. Default empty: etcd is asked without authentication.
	Username string `koanf:"username"`
	// File with the password. One trailing newline is cut. Default empty.
	PasswordFile string `koanf:"password_file"`
	// Environment variable with the password, instead of password_file. Default empty.
	PasswordEnv string `koanf:"password_env"`
	// The password that password_file or password_env gave. Never printed.
	Password Secret `koanf:"-" secret:"password"`
	// How https endpoints are verified.
	TLS ClientTLS `koanf:"tls"`
}

// Embedded is the etcd inside this process.
type Embedded struct {
	// Confirms that there is only ever one replica. Default false: the embedded etcd is refused
	// inside Kubernetes, where two replicas with a store each would run every event twice.
	SingleReplica bool `koanf:"single_replica"`
	// How large its database may become. Default 2GiB; 16MiB to 8GiB. When records alone fill it,
	// nothing new is taken until some have expired.
	Quota Size `koanf:"quota"`
}

// Route says which deliveries are guarded, and by which rules.
type Route struct {
	// Unique name: a-z, 0-9 and -. Required. A renamed route forgets its keys.
	Name string `koanf:"name"`
	// Names that it had, or those of routes that are gone: it runs what was accepted under them,
	// [stripe-old]. Default none.
	FormerNames []string `koanf:"former_names"`
	// Which deliveries. `path: …` beside name is the short form of match.path.
	Match Match `koanf:"match" beside:"path"`
	// Name of the sender: stripe, github … (docs/senders). It fills event_id, verify.scheme and
	// what else suits that sender; whatever is set here overrides it. Default empty: no sender in
	// particular.
	Preset string `koanf:"preset" empty:"its signatures would not be checked"`
	// Template of the scope of the lock: deliveries with the same workflow run one at a time.
	// Default "{route}": one at a time for the whole route.
	Workflow string `koanf:"workflow"`
	// Template of the sender's name for the event. Default "{header.Idempotency-Key}". "{preset}"
	// leaves it to the preset, where no template can say it.
	EventID string `koanf:"event_id"`
	// What an event is found by, beside its ID, as a template for each name: {order:
	// "{body.order_number}"}. At most 4, with what the preset says. A value is cut to 128 bytes;
	// one that is missing from a delivery is left out; an empty template takes out the preset's.
	// Default none, or what the preset says.
	Labels Labels `koanf:"labels"`
	// What happens when event_id yields nothing: payload takes the fingerprint as the key, reject
	// answers 400, pass forwards the delivery unguarded, run runs it as an event of its own, so
	// that no duplicate of it is found. Default payload, or what the preset says.
	OnMissingEventID naming.MissingEventID `koanf:"on_missing_event_id"`
	// Members of body and query that change between attempts of one event: [body.sent_at,
	// "body.items[*].at", form.t, xml.a.t]; "*" is the whole body. The fingerprint, and so
	// on_mismatch and the payload key, leave them out; what is forwarded has them. At most 64.
	// Default none.
	Ignore []string `koanf:"ignore"`
	// Whether events are counted and named, or are one event, that have the same body but for the
	// ID. A mode alone is the short form.
	Twins Twins `koanf:"twins" short:"mode"`
	// Whether the service asks its senders for HTTP Digest. Then a request without body and without
	// Authorization is no event: it passes to the service without a lock, which answers with its
	// challenge. Senders such as curl need that. Default false.
	Digest bool `koanf:"digest"`
	// How deliveries are signed.
	Verify Verify `koanf:"verify"`
	// A request of the sender that is no event, with which it checks the endpoint. Default: what
	// the preset says, else none.
	Handshake Handshake `koanf:"handshake"`
	// One delivery of a workflow at a time.
	Lock Lock `koanf:"lock"`
	// Shared limits that its executions count against, by their names in limits.shared: [erp].
	// Default none.
	Uses []string `koanf:"uses"`
	// One execution per event.
	Idempotency Idempotency `koanf:"idempotency"`
	// How the service is asked what became of an event, for idempotency.on_unknown: ask.
	Ask Ask `koanf:"ask"`
	// When an execution goes on after its answer.
	Hold Hold `koanf:"hold"`
	// Which deliveries are accepted and run later, where their sender would lose them otherwise.
	// true is the short form of enabled.
	Park Park `koanf:"park" short:"enabled"`
	// Which requests are kept after they have run, so that they can be run again.
	Requests Requests `koanf:"requests"`
	// What happens to events that come after a newer one. true is the short form of preset.
	Order Order `koanf:"order" short:"preset"`
	// What happens while etcd cannot decide: reject answers 503 and leaves the upstream untouched,
	// forward lets the delivery through unguarded. Default reject.
	OnStoreDown OnStoreDown `koanf:"on_store_down"`
	// While the sender is half way to switching the endpoint off, as it counts failures: park
	// accepts its events at once, so that it counts a success. It needs park and a preset whose
	// limit is known. Default ignore: the metrics say so.
	OnSenderLimit OnSenderLimit `koanf:"on_sender_limit"`
	// enforce, or observe: decide, count and log, but forward every delivery. Default enforce.
	Mode Mode `koanf:"mode"`
	// HTTP status per refusing decision, such as {locked: 503}; asked is that of duplicates of an
	// event that the service says to have executed. Default none: the statuses of the
	// documentation.
	Respond map[string]int `koanf:"respond"`
}

// Match says which deliveries a route covers. All of its conditions must hold.
type Match struct {
	// Path pattern: {x} is one segment, {x...} at the end is the rest. Required.
	Path string `koanf:"path"`
	// HTTP methods, in capitals. Default POST, PUT, PATCH.
	Methods []string `koanf:"methods"`
	// Host names without port; the case does not matter. Default none: any host.
	Hosts []string `koanf:"hosts" empty:"deliveries for any host would match"`
}

// SchemeNone is the verify.scheme of deliveries whose signature is not checked.
const SchemeNone = "none"

// Verify says how the deliveries of a route are signed. The zero value is not valid; defaultRoute
// has scheme none.
type Verify struct {
	// Name of a preset, or hmac, jwt, token or none. Default none, or what the preset says: nothing
	// is checked.
	Scheme string `koanf:"scheme"`
	// File with the secret that the sender signs with. One trailing newline is cut. Default empty.
	SecretFile string `koanf:"secret_file"`
	// Environment variable with the secret, instead of secret_file. Default empty.
	SecretEnv string `koanf:"secret_env"`
	// Files with several secrets, while one is rolled: any match is valid. Instead of secret_file.
	// Default none.
	SecretFiles []string `koanf:"secret_files"`
	// File with the sender's public key or certificate: PEM, the sender's own encoding, or for jwt
	// a JWKS. Nothing is fetched. Default empty.
	PublicKeyFile string `koanf:"public_key_file"`
	// Files with several public keys, while one is rolled. Instead of public_key_file. Default
	// none.
	PublicKeyFiles []string `koanf:"public_key_files"`
	// Origin that the sender was given, and the path prefix that an ingress strips, if there is
	// one: https://hooks.example.com. For senders that sign the URL: twilio, square, hubspot.
	// Default empty.
	PublicURL string `koanf:"public_url"`
	// PayPal's name of the webhook. Default empty.
	WebhookID string `koanf:"webhook_id"`
	// How old the signed time may be. Default what the scheme's sender documents. 0s means no age
	// check.
	Tolerance time.Duration `koanf:"tolerance"`
	// scheme hmac: sha1, sha256 or sha512; jwt: such as ES256. Some senders have versions: github
	// sha1, hubspot v1 or v2. Default empty: sha256, what fits the key, or the sender's newest.
	Algorithm string `koanf:"algorithm"`
	// schemes hmac, jwt and token: the header with the signature or the token. Default empty; jwt:
	// Authorization.
	Header string `koanf:"header"`
	// Instead of header, the places of it, as sources of a template: header.X, header.X[v1] for a
	// part of a list, query.x, body.a.b. Any match is valid. Default none.
	From []string `koanf:"from"`
	// schemes hmac, jwt and token: what stands before it there, such as "sha256=". Default empty;
	// jwt without header and from: "Bearer ".
	Prefix string `koanf:"prefix"`
	// scheme hmac: hex, in either case, or base64, also in the alphabet for URLs and without
	// padding. Default empty: hex.
	Encoding string `koanf:"encoding"`
	// scheme hmac: what is signed: text with {body}, {method}, {url}, {target} and the sources of
	// templates. Default empty: {body}.
	Content string `koanf:"content"`
	// scheme hmac: the source in content that is the signed time, such as header.X[t]: Unix seconds
	// or milliseconds, or RFC 3339. Default empty: no time is signed.
	Timestamp string `koanf:"timestamp"`
	// schemes hmac and jwt: how the secret is written: text, base64 or hex. Default empty: text,
	// taken byte for byte.
	SecretEncoding string `koanf:"secret_encoding"`
	// scheme jwt: the claim iss must be this. Default empty: any.
	Issuer string `koanf:"issuer" empty:"tokens of any issuer would be taken"`
	// scheme jwt: the claim aud must have this. Default empty: any, which a public key allows only
	// with body_hash.
	Audience string `koanf:"audience" empty:"tokens for any audience would be taken"`
	// scheme jwt: further claims that the token must have, as name=value. Default none.
	Claims []string `koanf:"claims" empty:"tokens without these claims would be taken"`
	// scheme jwt: the claim with the SHA-256 of the body. Default empty: nothing of the body is
	// signed.
	BodyHash string `koanf:"body_hash"`
	// What secret_file, secret_env or secret_files gave. Never printed.
	Secrets []Secret `koanf:"-" secret:"secret"`
	// What public_key_file or public_key_files gave.
	PublicKeys []Secret `koanf:"-" secret:"public_key"`
}

// Handshake says which requests of a sender are a handshake, and how they are answered. The zero
// value is none.
type Handshake struct {
	// What tells a handshake from an event, as sources of a template that it has:
	// query.hub.challenge, or body.type=url_verification with the value. All must hold. Default
	// none: there is no handshake.
	When []string `koanf:"when"`
	// Its method, also where match.methods has others: GET. Default empty: one of the route's.
	Method string `koanf:"method"`
	// It comes without a signature. Then it is answered here, and never passed on. Default false:
	// its signature is checked first.
	Unsigned bool `koanf:"unsigned"`
	// Source that must be the token in token_file, such as query.hub.verify_token. Default empty:
	// none is asked for.
	TokenAt string `koanf:"token"`
	// File with that token. One trailing newline is cut. Default empty.
	TokenFile string `koanf:"token_file"`
	// Environment variable with that token, instead of token_file. Default empty.
	TokenEnv string `koanf:"token_env"`
	// Body of the answer: text with sources in braces, such as {query.hub.challenge}; {hmac.body.x}
	// is the digest of one, made as the route's signatures. "{{" and "}}" are braces. Default
	// empty: no body.
	Answer string `koanf:"answer"`
	// Its type. With application/json, values are escaped for a JSON string. Default empty:
	// text/plain.
	ContentType string `koanf:"content_type"`
	// A header line of the answer: "X-Hook-Secret: {header.X-Hook-Secret}". Default empty: none.
	// Where answer is empty, too, the upstream answers.
	Header string `koanf:"header"`
	// What token_file or token_env gave. Never printed.
	Token Secret `koanf:"-" secret:"token"`
}

// Complete reports whether the token that h names was read.
func (h *Handshake) Complete() bool {
	return h.TokenFile == "" && h.TokenEnv == "" || !h.Token.IsZero()
}

// Complete reports whether everything that v names was read. It is false only if a file or variable
// is missing and Source let Load go on without it.
func (v *Verify) Complete() bool {
	named := func(file, variable string, files []string) int {
		n := len(files)
		if file != "" {
			n++
		}
		if variable != "" {
			n++
		}
		return n
	}
	return len(v.Secrets) == named(v.SecretFile, v.SecretEnv, v.SecretFiles) &&
		len(v.PublicKeys) == named(v.PublicKeyFile, "", v.PublicKeyFiles)
}

// Lock is the rule that one delivery of a workflow runs at a time.
type Lock struct {
	// What a delivery does when another one of its workflow runs: fail_fast is 409 (where others
	// overtook the event since it was refused, it waits a little before), wait queues, skip is 200
	// and drops the event, latest queues and replaces the one that waits, which gets 200, none
	// takes no lock. Default fail_fast.
	Strategy idem.Strategy `koanf:"strategy"`
	// How many events of one workflow run at a time. Default 1: its lock covers the workflow, and
	// each event gets a fencing token. With more its lock covers the event, there is no token, and
	// Hooklock-Slot says which of the slots it has.
	Limit int `koanf:"limit"`
	// How long a delivery waits for the lock with strategy wait and latest, and at most with
	// fail_fast, if others overtook its event. A duplicate that is attached (idempotency.in_flight)
	// waits for upstream.timeout and this. Default 5s.
	WaitTimeout time.Duration `koanf:"wait_timeout"`
	// Deliveries of one workflow that wait for either in this process; more is 429, and of
	// overtaken ones 409. Default 100.
	MaxWaiting int `koanf:"max_waiting"`
	// strategy latest: the newest runs when nothing newer came for this long. Default 0s: when the
	// lock is free.
	Quiet time.Duration `koanf:"quiet"`
	// strategy latest with quiet: it runs this long after the first one that it replaced, whatever
	// else comes. Default 1m.
	MaxWait time.Duration `koanf:"max_wait"`
	// A running execution is ended at this age. Default 1h. 0s means never.
	MaxDuration time.Duration `koanf:"max_duration"`
	// How long the lock stays closed after an unknown outcome, because the upstream may still be at
	// work. Default 15s. 0s frees the lock at once.
	ReleaseDelay time.Duration `koanf:"release_delay"`
}

// Hold says when an execution, and with it the lock, outlives the upstream's answer. The upstream
// may ask for it with a header of its answer, too: Hooklock-Hold: 30m.
type Hold struct {
	// Upstream statuses after which the work goes on: 202, 2xx. Default none.
	OnStatus []StatusRange `koanf:"on_status"`
	// How long the upstream may be silent, after such a status and after each heartbeat that names
	// no time. Then the execution has failed, with an unknown outcome. Default 30m; whole seconds,
	// at least 2s.
	TTL time.Duration `koanf:"ttl"`
}

// Default returns the configuration of an empty file. Each call returns a copy.
func Default() *Config {
	return &Config{
		ConfigVersion: 1,
		Listen:        Listen{Address: "127.0.0.1:8080"},
		DataDir:       "./hooklock-data",
		Upstream: Upstream{URL: "http://127.0.0.1:8081", Timeout: 30 * time.Second, ConnectTimeout: time.Second,
			ReuseAfterBody: ReuseAuto},
		Unmatched: UnmatchedPass,
		Limits: Limits{
			RequestBody:    8 * MiB,
			ResponseBody:   8 * MiB,
			RequestHeader:  16 * KiB,
			HeaderTimeout:  10 * time.Second,
			BodyTimeout:    30 * time.Second,
			RequestBuffer:  MiB,
			Suggestions:    8 * MiB,
			Progress:       64 * KiB,
			WriteTimeout:   30 * time.Second,
			StreamTimeout:  10 * time.Minute,
			IdleTimeout:    75 * time.Second,
			MaxConnections: 10000,
			Waiting:        2000,
			Shared:         SharedLimits{},
			Parked:         ParkedLimits{Events: 100_000, Bytes: 1024 * MiB, Running: 16},
			Kept:           KeptLimits{Events: 1_000_000, Bytes: 4 * GiB},
		},
		ShutdownTimeout: 40 * time.Second,
		Etcd: Etcd{
			Endpoints:      []string{},
			Embedded:       Embedded{Quota: 2 * GiB},
			Prefix:         "/hooklock",
			SessionTTL:     15 * time.Second,
			RequestTimeout: 2 * time.Second,
		},
		ParkStore: ParkStore{Inline: 16 * KiB, S3: S3{Region: "us-east-1", RequestTimeout: 10 * time.Second}},
		Admin:     Admin{Listen: "127.0.0.1:8079", Hosts: []string{}, UserHeaderFrom: []string{}, Tokens: []Token{}},
		Log:       Log{Level: LogInfo, Format: LogJSON, Sample: 1, EventID: true},
		Notify:    Notify{Every: time.Hour, Routes: []string{}},
		Routes:    []Route{},
	}
}

// defaultRoute returns a route with defaults. It lacks a name and a path, which have none.
func defaultRoute() Route {
	return Route{
		Match:            Match{Methods: []string{"POST", "PUT", "PATCH"}, Hosts: []string{}},
		Workflow:         "{route}",
		EventID:          "{header.Idempotency-Key}",
		OnMissingEventID: naming.MissingPayload,
		Verify: Verify{Scheme: SchemeNone, SecretFiles: []string{}, PublicKeyFiles: []string{},
			From: []string{}, Claims: []string{}},
		Handshake: Handshake{When: []string{}},
		Lock: Lock{
			Strategy:     idem.FailFast,
			Limit:        1,
			WaitTimeout:  5 * time.Second,
			MaxWaiting:   100,
			MaxWait:      time.Minute,
			MaxDuration:  time.Hour,
			ReleaseDelay: 15 * time.Second,
		},
		Idempotency: Idempotency{
			Enabled:          true,
			InFlight:         idem.Conflict,
			Retention:        168 * time.Hour,
			PayloadRetention: 10 * time.Minute,
			ReplayBody:       64 * KiB,
			ReplayRetention:  10 * time.Minute,
			OnMismatch:       idem.MismatchReject,
			Credentials:      []string{},
			OnUnknown:        idem.UnknownRetry,
			Attempts:         20,
			Keep:             []StatusRange{{200, 299}},
			Unknown:          []StatusRange{},
		},
		Hold: Hold{OnStatus: []StatusRange{}, TTL: 30 * time.Minute},
		Park: defaultPark(),
		Ask: Ask{
			Executed:    Reply{Status: []StatusRange{}, Body: Members{}},
			NotExecuted: Reply{Status: []StatusRange{}, Body: Members{}},
			After:       2 * time.Second, Attempts: 5,
		},
		Order:         Order{Unit: idem.UnitNone, OnStale: idem.StaleAnnotate},
		OnStoreDown:   StoreDownReject,
		OnSenderLimit: SenderLimitIgnore,
		Mode:          ModeEnforce,
		Respond:       map[string]int{},
		Labels:        Labels{},
		Uses:          []string{},
		Ignore:        []string{},
		Twins:         Twins{Mode: TwinsReport, Window: 10 * time.Minute},
		FormerNames:   []string{},
	}
}

// defaultToken returns a token with defaults. It lacks a name and a secret, which have none.
func defaultToken() Token {
	return Token{Scopes: []Scope{ScopeRead}, Workflows: []string{"*"}}
}
