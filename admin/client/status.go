package client

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// ReplicaStatus is how one replica is doing, and what it depends on.
type ReplicaStatus struct {
	Replica       string        `json:"replica"` // the replica that answers
	Version       string        `json:"version"`
	StartedAt     Time          `json:"startedAt"`
	At            Time          `json:"at"`                 // when it answered, by its own clock, as all times here
	NotReady      string        `json:"notReady,omitempty"` // Why it takes no deliveries. Absent if it takes them.
	Session       SessionStatus `json:"session"`
	Etcd          EtcdStatus    `json:"etcd"`
	Upstream      Contact       `json:"upstream"`
	Config        ConfigStatus  `json:"config"`
	UpstreamReuse UpstreamReuse `json:"upstreamReuse"`

	// Executions that this replica runs, without parked ones between two tries.
	Running Crowd `json:"running"`
	// Deliveries that wait in this replica for a lock, or for the answer of the first delivery of
	// their event.
	Waiting Crowd         `json:"waiting"`
	Held    Crowd         `json:"held"` // Held locks, over all replicas, as they were up to 15 s ago.
	Parked  ParkedStatus  `json:"parked"`
	Slots   []SlotCount   `json:"slots,omitempty"`  // How many slots of limits its executions have, or wait for.
	Paused  []PauseStatus `json:"paused,omitempty"` // what is paused, as this replica has heard

	RateSeconds float64     `json:"rateSeconds"` // over how many seconds the traffic of routes is counted
	Routes      []RouteRate `json:"routes"`

	raw
}

// SessionStatus is the session by which a replica takes locks.
type SessionStatus struct {
	Live      bool    `json:"live"` // it may take locks
	Name      string  `json:"name,omitempty"`
	OpenedAt  Time    `json:"openedAt,omitzero"`
	TTL       float64 `json:"ttl"`              // the setting etcd.session_ttl, in seconds
	Remaining float64 `json:"remaining"`        // for how many seconds it may act without another renewal
	Reason    string  `json:"reason,omitempty"` // why it is not live
}

// EtcdStatus is the etcd of a replica.
type EtcdStatus struct {
	Embedded bool `json:"embedded"`
	// How full it is, and when it will be full at this rate, for people. Absent if that is not
	// known.
	Space string `json:"space,omitempty"`
	// As configured. One is asked at a time, and the next one if that fails.
	Members []Contact `json:"members"`
}

// The states of a Contact.
const (
	ContactAnswers  = "answers"   // the latest request was answered
	ContactFails    = "fails"     // the latest request failed
	ContactNotAsked = "not_asked" // there was no request since the start
)

// Contact is what a replica knows of another process from its own requests to it. No request is
// sent for this.
type Contact struct {
	Address string `json:"address"`
	// what came of the latest request
	State      string `json:"state" jsonschema:"enum=answers,enum=fails,enum=not_asked"`
	AnsweredAt Time   `json:"answeredAt,omitzero"` // the latest answer
	FailedAt   Time   `json:"failedAt,omitzero"`   // the latest failure
	Failure    string `json:"failure,omitempty"`   // what the latest failure was
}

// UpstreamReuse says whether a connection to the service is used again after a request with a body.
type UpstreamReuse struct {
	// The setting upstream.reuse_after_body: auto, true or false. Empty before routes are loaded.
	Setting string `json:"setting"`
	// The Server header of the service's latest answer, at most 120 bytes of it. Absent if there
	// was none.
	Server string `json:"server,omitempty"`
	// What that server does with a body that it does not need. Absent if that is not known; then
	// auto uses no connection again.
	Known string `json:"known,omitempty"`
	// How many requests with a body were answered on a connection that had carried one before.
	Reused uint64 `json:"reused"`
	// What the service did on such a connection that may have been the answer to another request.
	// Since then none is used again. Absent if nothing.
	Ended   string `json:"ended,omitempty"`
	EndedAt Time   `json:"endedAt,omitzero"`
	// Until when no connection is used again, because the service closed one while a request was on
	// its way. It may be in the past.
	RestsUntil Time `json:"restsUntil,omitzero"`
}

// ConfigStatus is the configuration in force.
type ConfigStatus struct {
	File     string `json:"file"`
	SHA256   string `json:"sha256"` // the SHA-256 of the file as it was read
	LoadedAt Time   `json:"loadedAt"`
	// The file as it was last read was refused, and an older one is in force.
	Stale bool `json:"stale"`
	// The latest refusal. Absent if there was none since the start.
	Refused *Refusal `json:"refused,omitempty"`
}

// Refusal is a changed configuration that was refused.
type Refusal struct {
	At       Time     `json:"at"`
	Problems []string `json:"problems"` // the errors, each with its place
}

// Crowd is a number of executions or deliveries, and when the oldest began.
type Crowd struct {
	Count    int  `json:"count"`
	OldestAt Time `json:"oldestAt,omitzero"` // absent if there is none, or if that is not known
}

// ParkedStatus is what is parked, over all replicas.
type ParkedStatus struct {
	Count       int   `json:"count"`
	OldestAt    Time  `json:"oldestAt,omitzero"`
	Bytes       int64 `json:"bytes"`
	Blocked     int   `json:"blocked"`     // queues that wait for a person
	DeadLetters int   `json:"deadLetters"` // stored requests of executions that have ended
	// The parked events, by the route that accepted them.
	Routes           []RouteCount `json:"routes,omitempty"`
	DeadLetterRoutes []RouteCount `json:"deadLetterRoutes,omitempty"` // the dead letters, by route
	// The parked events whose route this replica does not have, by route. It tries none of them.
	Unrouted []RouteCount `json:"unrouted,omitempty"`
}

// RouteCount is the number of events of a route.
type RouteCount struct {
	Route string `json:"route"`
	Count int    `json:"count" jsonschema:"minimum=1"`
}

// RouteRate is the recent traffic of a route at this replica.
type RouteRate struct {
	Route string `json:"route"`
	Mode  string `json:"mode"` // enforce or observe
	// Deliveries of the last rateSeconds by decision; in mode observe, by the decision that they
	// would have got. A decision without a delivery is absent.
	Decisions map[string]int64 `json:"decisions"`
	// Requests to the service in the last rateSeconds that it answered with a 2xx: forwarded
	// deliveries, and tries of parked events.
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"` // requests that it answered with another status
	// Requests without a whole answer, and executions that lost their lock or were cancelled.
	Errors int64 `json:"errors"`
	// When the newest delivery ended. Absent if none came since the start.
	LastAt Time `json:"lastAt,omitzero"`
	// The sender of its preset is known to change a delivery between attempts.
	Changes      bool          `json:"changes,omitempty"`
	WrongEventID *WrongEventID `json:"wrongEventId,omitempty"` // Absent if none was seen in the last day.
	// Events of the last day that had the body of another one shortly before, under another event
	// ID.
	Twins int64 `json:"twins,omitempty"`
}

// Status returns the status of the replica that answers.
func (c *Client) Status(ctx context.Context) (*ReplicaStatus, error) {
	return get[ReplicaStatus](ctx, c, "/v1/status", "replica", nil)
}

// RunningConfig is the configuration that a replica has in force.
type RunningConfig struct {
	File     string `json:"file"`
	SHA256   string `json:"sha256"` // the SHA-256 of the file as it was read
	LoadedAt Time   `json:"loadedAt"`
	// The configuration with all defaults and without secrets, as hooklock config show prints it.
	YAML string `json:"yaml"`

	raw
}

// Config returns the configuration in force. With origin, its YAML says where each value comes
// from.
func (c *Client) Config(ctx context.Context, origin bool) (*RunningConfig, error) {
	asked := ""
	if origin {
		asked = "true"
	}
	return get[RunningConfig](ctx, c, "/v1/config", "yaml", queryOfPairs("origin", asked))
}

// Reloaded is a configuration that was taken over.
type Reloaded struct {
	SHA256  string   `json:"sha256"`  // the SHA-256 of the file that is in force now
	Changed []string `json:"changed"` // the settings and routes that changed; empty if none did

	raw
}

// reloadTime is what the server takes at most for a reload.
const reloadTime = 25 * time.Second

// Reload has the replica read its configuration file again, and take it over. A *Problem with
// CodeConfigRefused has the errors in Problems; then the old configuration stays in force.
func (c *Client) Reload(ctx context.Context) (*Reloaded, error) {
	return ask[Reloaded](ctx, c, call{method: http.MethodPost, path: "/v1/config/reload", wait: reloadTime,
		has: "changed"})
}

// The states of a Replica.
const (
	ReplicaLive    = "live"    // it has a session
	ReplicaGone    = "gone"    // its session has ended, and it did not say that it stops
	ReplicaStopped = "stopped" // it said that it stops, and has
)

// Replica is one process of Hooklock, as it described itself last.
type Replica struct {
	Replica string `json:"replica"`
	Version string `json:"version"`
	// gone: its session has ended, and it did not say that it stops.
	State     string `json:"state" jsonschema:"enum=live,enum=gone,enum=stopped"`
	Self      bool   `json:"self,omitempty"` // it is the one that answers
	StartedAt Time   `json:"startedAt"`      // when it started, by its own clock
	// When it described itself last, by its own clock. For a live one that is at most a minute ago.
	SeenAt       Time   `json:"seenAt"`
	Session      string `json:"session,omitempty"`  // its latest session
	NotReady     string `json:"notReady,omitempty"` // Why it takes no deliveries. Absent if it takes them.
	ConfigFile   string `json:"configFile"`
	ConfigSHA256 string `json:"configSha256"` // the SHA-256 of the file as it was read
	// The settings and routes in force that differ from those of the replica that answers.
	Differs []string `json:"differs,omitempty"`
}

// ReplicaList has the replicas that are alive, and those that ended in the last hour.
type ReplicaList struct {
	Replicas []Replica `json:"replicas"`

	raw
}

// Replicas returns the replicas, those that are alive first.
func (c *Client) Replicas(ctx context.Context) (*ReplicaList, error) {
	return get[ReplicaList](ctx, c, "/v1/replicas", "replicas", nil)
}

// NotifyTest is what came of a test message to the receiver that notify.url_file names.
type NotifyTest struct {
	Taken   bool   `json:"taken"`             // the receiver answered with a 2xx
	Status  int    `json:"status,omitempty"`  // the status of its answer; absent if none came
	Answer  string `json:"answer,omitempty"`  // the beginning of its body, in one line
	Problem string `json:"problem,omitempty"` // why the message was not taken; the URL is not in it

	raw
}

// notifyTime is what the server takes at most for a test message.
const notifyTime = 10 * time.Second

// TestNotify has the replica send a test message, and returns what the receiver answered.
func (c *Client) TestNotify(ctx context.Context) (*NotifyTest, error) {
	return ask[NotifyTest](ctx, c, call{method: http.MethodPost, path: "/v1/notify/test", wait: notifyTime,
		has: "taken"})
}

// Live returns nil if the replica answers.
func (c *Client) Live(ctx context.Context) error {
	_, err := c.sendOnce(ctx, call{method: http.MethodGet, path: "/livez"})
	return err
}

// CodeNotReady is the code of the problem that Ready returns. The API sends it as text.
const CodeNotReady = "not_ready"

// Ready returns nil if the replica takes deliveries: it has a session and routes. A *Problem with
// CodeNotReady says why it does not.
func (c *Client) Ready(ctx context.Context) error {
	var why string
	status, err := c.sendOnce(ctx, call{method: http.MethodGet, path: "/readyz", query: queryOfPairs("verbose", "1"),
		accept: func(status int, body []byte) (ok bool) {
			why, ok = strings.CutPrefix(string(body), "not ready")
			return ok && status == http.StatusServiceUnavailable
		}})
	if err != nil || status == http.StatusOK {
		return err
	}
	return &Problem{Title: "not ready", Status: status, Code: CodeNotReady,
		Detail: strings.TrimSpace(strings.TrimPrefix(why, ":"))}
}

// Metrics returns the metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) { return c.getBytes(ctx, "/metrics") }

// OpenAPI returns the description of the API, in JSON.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) {
	return c.getBytes(ctx, "/openapi.json")
}

func (c *Client) getBytes(ctx context.Context, path string) ([]byte, error) {
	var text []byte
	_, err := c.sendOnce(ctx, call{method: http.MethodGet, path: path, into: &text})
	return text, err
}
