package client

import (
	"context"
	"net/http"
	"time"
)

// ReplicaStatus is the status of one process, and of what it depends on.
type ReplicaStatus struct {
	Replica       string        `json:"replica"` // which process answers
	Version       string        `json:"version"`
	StartedAt     Time          `json:"startedAt"`
	At            Time          `json:"at"`                 // when it answered, by its own clock, as all other times here
	NotReady      string        `json:"notReady,omitempty"` // why deliveries should not come here now; absent: they may
	Session       SessionStatus `json:"session"`
	Etcd          EtcdStatus    `json:"etcd"`
	Upstream      Contact       `json:"upstream"`
	Config        ConfigStatus  `json:"config"`
	UpstreamReuse UpstreamReuse `json:"upstreamReuse"`

	Running Crowd `json:"running"` // executions that this process runs; not parked ones between two tries
	// Deliveries that wait in this process: for a lock, or for the answer of the first delivery
	// of their event.
	Waiting Crowd `json:"waiting"`
	// Locks that no process owns, over all replicas, as this one saw up to 15 s ago.
	Held   Crowd        `json:"held"`
	Parked ParkedStatus `json:"parked"`
	// How many slots of limits executions of this process have, or wait for.
	Slots  []SlotCount   `json:"slots,omitempty"`
	Paused []PauseStatus `json:"paused,omitempty"` // what is paused, as this process has heard

	RateSeconds float64     `json:"rateSeconds"` // how far the decisions of routes look back
	Routes      []RouteRate `json:"routes"`

	raw
}

// SessionStatus is the session with which a process claims locks.
type SessionStatus struct {
	Live      bool    `json:"live"` // it may claim locks
	Name      string  `json:"name,omitempty"`
	OpenedAt  Time    `json:"openedAt,omitzero"`
	TTL       float64 `json:"ttl"`              // etcd.session_ttl, in seconds
	Remaining float64 `json:"remaining"`        // seconds for which it may still act without another renewal
	Reason    string  `json:"reason,omitempty"` // why it is not live
}

// EtcdStatus is the ledger's store.
type EtcdStatus struct {
	Embedded bool `json:"embedded"`
	// How full it is, and when at this rate, for people. Missing: that is not known.
	Space   string    `json:"space,omitempty"`
	Members []Contact `json:"members"` // as configured. One is asked at a time, and the next one when that fails.
}

// The states of a Contact.
const (
	ContactAnswers  = "answers"   // the latest request was answered
	ContactFails    = "fails"     // the latest one failed
	ContactNotAsked = "not_asked" // there was none since the start
)

// Contact is what a process knows of another one from its own requests; none is sent for this.
type Contact struct {
	Address string `json:"address"`
	// By the latest request of this process; nobody is asked for this.
	State      string `json:"state" jsonschema:"enum=answers,enum=fails,enum=not_asked"`
	AnsweredAt Time   `json:"answeredAt,omitzero"` // the latest answer
	FailedAt   Time   `json:"failedAt,omitzero"`   // the latest failure
	Failure    string `json:"failure,omitempty"`   // what it was
}

// UpstreamReuse says whether connections to the upstream are used again after a body.
type UpstreamReuse struct {
	Setting string `json:"setting"` // upstream.reuse_after_body: auto, true or false; empty before routes are loaded
	// The Server field of the service's latest answer, at most 120 bytes of it; absent: it had
	// none, or there was none.
	Server string `json:"server,omitempty"`
	// What that server does with a body that it does not need; absent: that is not known, and
	// auto uses no connection again.
	Known  string `json:"known,omitempty"`
	Reused uint64 `json:"reused"` // answered requests with a body whose connection had carried one before
	// What the service did on such a connection that may have been the answer to something else;
	// absent: nothing. Since then, none is used again.
	Ended   string `json:"ended,omitempty"`
	EndedAt Time   `json:"endedAt,omitzero"`
	// Until when none is used again, because the service closed one with a request on its way.
	// It may be in the past.
	RestsUntil Time `json:"restsUntil,omitzero"`
}

// ConfigStatus is the configuration in force.
type ConfigStatus struct {
	File     string `json:"file"`
	SHA256   string `json:"sha256"` // of the file as it was read, as sha256sum prints it
	LoadedAt Time   `json:"loadedAt"`
	// The file as it was last read was refused, and an older one is in force.
	Stale   bool     `json:"stale"`
	Refused *Refusal `json:"refused,omitempty"` // the latest one. Absent: none since the start.
}

// Refusal is a changed configuration that was refused.
type Refusal struct {
	At       Time     `json:"at"`
	Problems []string `json:"problems"` // what is wrong, each with its place
}

// Crowd is a number of executions or deliveries, and when the oldest began.
type Crowd struct {
	Count    int  `json:"count"`
	OldestAt Time `json:"oldestAt,omitzero"` // absent: there is none, or it is not known
}

// ParkedStatus is what is parked, over all replicas.
type ParkedStatus struct {
	Count       int   `json:"count"`
	OldestAt    Time  `json:"oldestAt,omitzero"`
	Bytes       int64 `json:"bytes"`
	Blocked     int   `json:"blocked"`     // workflows that wait for a person
	DeadLetters int   `json:"deadLetters"` // requests of ended executions
	// The accepted events by the route that they were accepted under.
	Routes           []RouteCount `json:"routes,omitempty"`
	DeadLetterRoutes []RouteCount `json:"deadLetterRoutes,omitempty"` // the dead letters by route
	// Those whose route this replica does not have, by route: none of them is tried here.
	Unrouted []RouteCount `json:"unrouted,omitempty"`
}

// RouteCount is how many events there are of a route.
type RouteCount struct {
	Route string `json:"route"`
	Count int    `json:"count" jsonschema:"minimum=1"`
}

// RouteRate is the recent traffic of a route of this process.
type RouteRate struct {
	Route string `json:"route"`
	Mode  string `json:"mode"` // enforce or observe
	// Deliveries of the last rateSeconds by decision; in mode observe, by what it would have
	// been. A decision that was not made is absent.
	Decisions map[string]int64 `json:"decisions"`
	// Requests to the service in the last rateSeconds that it answered with a 2xx: forwarded
	// deliveries, and tries of parked events.
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"` // those that it answered with another status
	// Those without a whole answer, and executions that lost their lock or were cancelled.
	Errors int64 `json:"errors"`
	LastAt Time  `json:"lastAt,omitzero"` // when the newest delivery ended; absent: none came since startedAt
	// The sender of its preset is known to change a delivery between attempts.
	Changes bool `json:"changes,omitempty"`
	// One of the last day.
	WrongEventID *WrongEventID `json:"wrongEventId,omitempty"`
	// Events of the last day that had the body of another one shortly before, under another
	// event ID.
	Twins int64 `json:"twins,omitempty"`
}

// Status returns the status of the process that answers.
func (c *Client) Status(ctx context.Context) (*ReplicaStatus, error) {
	return ask[ReplicaStatus](ctx, c, call{method: http.MethodGet, path: "/v1/status", has: "replica"})
}

// RunningConfig is the configuration that a process has in force.
type RunningConfig struct {
	File     string `json:"file"`
	SHA256   string `json:"sha256"` // of the file as it was read, as sha256sum prints it
	LoadedAt Time   `json:"loadedAt"`
	// All of it with every default filled in, as hooklock config show prints it. Secrets are not
	// in it.
	YAML string `json:"yaml"`

	raw
}

// Config returns the configuration in force. With origin, each of its values has where it comes
// from.
func (c *Client) Config(ctx context.Context, origin bool) (*RunningConfig, error) {
	asked := ""
	if origin {
		asked = "true"
	}
	return ask[RunningConfig](ctx, c, call{method: http.MethodGet, path: "/v1/config", query: query("origin", asked),
		has: "yaml"})
}

// Reloaded is a configuration that was taken over.
type Reloaded struct {
	SHA256  string   `json:"sha256"`  // of the file that is in force now
	Changed []string `json:"changed"` // settings and routes; empty: nothing was

	raw
}

// reloadTime is what the server takes at most for a reload.
const reloadTime = 25 * time.Second

// Reload lets the process read its configuration file again, and take it over. A *Problem with
// CodeConfigRefused has the errors in Problems; the old configuration stays in force then.
func (c *Client) Reload(ctx context.Context) (*Reloaded, error) {
	return ask[Reloaded](ctx, c, call{method: http.MethodPost, path: "/v1/config/reload", wait: reloadTime,
		has: "changed"})
}
