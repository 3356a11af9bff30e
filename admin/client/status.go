package client

import (
	"context"
	"net/http"
	"time"
)

// ReplicaStatus is the status of one process, and of what it depends on.
type ReplicaStatus struct {
	Replica   string        `json:"replica"`
	Version   string        `json:"version"`
	StartedAt Time          `json:"startedAt"`
	At        Time          `json:"at"`                 // when it answered, by its own clock, as all other times here
	NotReady  string        `json:"notReady,omitempty"` // why deliveries should not come here now; "" = they may
	Session   SessionStatus `json:"session"`
	Etcd      EtcdStatus    `json:"etcd"`
	Upstream  Contact       `json:"upstream"`
	Config    ConfigStatus  `json:"config"`
	// UpstreamReuse is how connections to the upstream that carried a delivery with a body are
	// reused.
	UpstreamReuse UpstreamReuse `json:"upstreamReuse"`

	Running Crowd `json:"running"` // executions that this process runs; not parked ones between two tries
	// deliveries that wait in this process: for a lock, or for the answer of the first delivery of
	// their event
	Waiting Crowd `json:"waiting"`
	// locks that no process owns, over all replicas, as this one saw up to 15 s ago
	Held   Crowd        `json:"held"`
	Parked ParkedStatus `json:"parked"`
	// Slots are the slots of limits that executions of this process have, or wait for.
	Slots []SlotCount `json:"slots,omitempty"`
	// Paused is what is paused, as far as this process knows.
	Paused []PauseStatus `json:"paused,omitempty"`

	RateSeconds float64     `json:"rateSeconds"` // how far the decisions of routes look back
	Routes      []RouteRate `json:"routes"`

	raw
}

// SessionStatus is the session with which a process claims locks.
type SessionStatus struct {
	Live      bool    `json:"live"`
	Name      string  `json:"name,omitempty"`
	OpenedAt  Time    `json:"openedAt,omitzero"`
	TTL       float64 `json:"ttl"`              // etcd.session_ttl, in seconds
	Remaining float64 `json:"remaining"`        // seconds for which it may still act without a renewal
	Reason    string  `json:"reason,omitempty"` // why it is not live
}

// EtcdStatus is the ledger's store.
type EtcdStatus struct {
	Embedded bool      `json:"embedded"`
	Space    string    `json:"space,omitempty"` // how full it is, and when at this rate, for operators; "" = not known
	Members  []Contact `json:"members"`         // as configured; one is used at a time, and the next one if that fails
}

// The states of a Contact.
const (
	ContactAnswers  = "answers"   // the latest request was answered
	ContactFails    = "fails"     // the latest one failed
	ContactNotAsked = "not_asked" // there was none since the start
)

// Contact is what a process knows of another one from its own requests; none is sent for this.
type Contact struct {
	Address    string `json:"address"`
	State      string `json:"state"`
	AnsweredAt Time   `json:"answeredAt,omitzero"` // the latest answer
	FailedAt   Time   `json:"failedAt,omitzero"`   // the latest failure
	Failure    string `json:"failure,omitempty"`   // what it was
}

// UpstreamReuse says whether connections to the upstream are used again after a body.
type UpstreamReuse struct {
	Setting string `json:"setting"` // upstream.reuse_after_body
	// Server is the Server field of the service's latest answer, at most 120 bytes of it; empty: it
	// had none, or there was none.
	Server string `json:"server,omitempty"`
	// Known is what that server does with a body that it does not need. Empty: that is not known,
	// and auto uses no connection again.
	Known  string `json:"known,omitempty"`
	Reused uint64 `json:"reused"` // answered requests with a body on a connection that had carried one before
	// Ended is what the service did on such a connection that may have been the answer to something
	// else; since then, none is used again.
	Ended   string `json:"ended,omitempty"`
	EndedAt Time   `json:"endedAt,omitzero"`
	// RestsUntil is until when none is, because the service closed one with a request on its way.
	// It may be in the past.
	RestsUntil Time `json:"restsUntil,omitzero"`
}

// ConfigStatus is the configuration in force.
type ConfigStatus struct {
	File     string `json:"file"`
	SHA256   string `json:"sha256"` // of the file as it was read, as sha256sum prints it
	LoadedAt Time   `json:"loadedAt"`
	// Stale: the file as it was last read was refused, and an older one is in force.
	Stale   bool     `json:"stale"`
	Refused *Refusal `json:"refused,omitempty"` // the latest one; nil = none since the start
}

// Refusal is a changed configuration that was refused.
type Refusal struct {
	At       Time     `json:"at"`
	Problems []string `json:"problems"`
}

// Crowd is a number of executions or deliveries, and when the oldest began.
type Crowd struct {
	Count    int  `json:"count"`
	OldestAt Time `json:"oldestAt,omitzero"` // zero: there is none, or it is not known
}

// ParkedStatus is what is parked, over all replicas.
type ParkedStatus struct {
	Count       int   `json:"count"`
	OldestAt    Time  `json:"oldestAt,omitzero"`
	Bytes       int64 `json:"bytes"`
	Blocked     int   `json:"blocked"`     // workflows that need a decision
	DeadLetters int   `json:"deadLetters"` // requests of ended executions
	// Routes are the accepted events by the route that they were accepted under.
	Routes []RouteCount `json:"routes,omitempty"`
	// DeadLetterRoutes are the dead letters by route.
	DeadLetterRoutes []RouteCount `json:"deadLetterRoutes,omitempty"`
	// Unrouted are those whose route this replica does not have, by route: it does not try them.
	Unrouted []RouteCount `json:"unrouted,omitempty"`
}

// RouteCount is how many events there are of a route.
type RouteCount struct {
	Route string `json:"route"`
	Count int    `json:"count"`
}

// RouteRate is the recent traffic of a route of this process.
type RouteRate struct {
	Route string `json:"route"`
	Mode  string `json:"mode"`
	// Decisions counts the deliveries of the last RateSeconds by decision; in mode observe, by the
	// decision that would have been made.
	Decisions map[string]int64 `json:"decisions"`
	// Succeeded, Failed and Errors are the requests to the service in that time: answered with a
	// 2xx, answered with another status, and without a whole answer. Forwarded deliveries and tries
	// of parked events count.
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Errors    int64 `json:"errors"`
	LastAt    Time  `json:"lastAt,omitzero"` // when the newest delivery ended; zero: none has since StartedAt
	// Changes: the sender of its preset is known to change a delivery between attempts, so a
	// changed duplicate is one.
	Changes bool `json:"changes,omitempty"`
	// WrongEventID is an event ID that came in the last day and names no single event; nil: none
	// did.
	WrongEventID *WrongEventID `json:"wrongEventId,omitempty"`
	// Twins are the events of the last day that had the body of another one shortly before, under
	// another event ID.
	Twins int64 `json:"twins,omitempty"`
}

// Status returns the status of the process that answers.
func (c *Client) Status(ctx context.Context) (*ReplicaStatus, error) {
	return ask[ReplicaStatus](ctx, c, call{method: http.MethodGet, path: "/v1/status", has: "replica"})
}

// RunningConfig is the configuration that a process has in force.
type RunningConfig struct {
	File     string `json:"file"`
	SHA256   string `json:"sha256"`
	LoadedAt Time   `json:"loadedAt"`
	// YAML is all of it with every default filled in, as hooklock config show prints it. Secrets
	// are not in it; the names of their files and variables are.
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
	SHA256  string   `json:"sha256"`
	Changed []string `json:"changed"` // settings and routes; empty: none

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
