package client

import (
	"context"
)

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
