package client

import (
	"context"
	"net/http"
)

// The states of a Replica.
const (
	ReplicaLive    = "live"    // it has a session
	ReplicaGone    = "gone"    // its session has ended, and it did not say that it stops
	ReplicaStopped = "stopped" // it has stopped in order
)

// Replica is one process that shares the ledger, as it has described itself last.
type Replica struct {
	Replica string `json:"replica"`
	Version string `json:"version"`
	// gone: its session has ended, and it did not say that it stops.
	State     string `json:"state" jsonschema:"enum=live,enum=gone,enum=stopped"`
	Self      bool   `json:"self,omitempty"` // it is the one that answers
	StartedAt Time   `json:"startedAt"`      // by its own clock, as seenAt
	// When it described itself last: of a live one up to a minute ago.
	SeenAt       Time   `json:"seenAt"`
	Session      string `json:"session,omitempty"`  // the latest one
	NotReady     string `json:"notReady,omitempty"` // why deliveries should not go there. Absent: they may.
	ConfigFile   string `json:"configFile"`
	ConfigSHA256 string `json:"configSha256"` // of the file as it was read
	// The settings and routes in force that are not as those of the one that answers.
	Differs []string `json:"differs,omitempty"`
}

// ReplicaList is the replicas that are alive, and those that ended in the last hour.
type ReplicaList struct {
	Replicas []Replica `json:"replicas"`

	raw
}

// Replicas returns the replicas, those that are alive first.
func (c *Client) Replicas(ctx context.Context) (*ReplicaList, error) {
	return ask[ReplicaList](ctx, c, call{method: http.MethodGet, path: "/v1/replicas", has: "replicas"})
}
