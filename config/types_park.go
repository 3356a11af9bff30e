package config

import (
	"path/filepath"
	"slices"
	"time"

	"hooklock/idem"
)

// ParkedLimits bound what is parked, over all replicas, as far as each knows of the others.
type ParkedLimits struct {
	// Events. Default 100000.
	Events int `koanf:"events" reload:"true"`
	// Their requests, wherever they are kept. Default 1GiB.
	Bytes Size `koanf:"bytes" reload:"true"`
	// Parked events that this process runs at one time. Default 16.
	Running int `koanf:"running" reload:"true"`
}

// KeptLimits bound the requests of requests.keep, over all replicas. The oldest go first.
type KeptLimits struct {
	// Requests. Default 1000000.
	Events int `koanf:"events" reload:"true"`
	// Their bytes in the request store. Default 4GiB.
	Bytes Size `koanf:"bytes" reload:"true"`
}

// Requests says which requests of a route are kept after they have run. The zero value keeps none.
type Requests struct {
	// For how long the request of each event that the service was called for is kept, from the
	// start of its execution, in the request store: park_store.dir or park_store.s3. Default 0s:
	// none is. It may be written in days: 7d.
	Keep time.Duration `koanf:"keep" days:"true"`
}

// Park says which deliveries of a route are accepted and run later: their bytes are committed to
// the store, then the sender gets a 2xx, and the event runs in its workflow's order, exactly as it
// came.
type Park struct {
	// Whether anything is parked. Default false; true if the block is present.
	Enabled bool `koanf:"enabled"`
	// For what: locked (another event of the workflow is before it), slow (the service takes longer
	// than the sender waits), unreachable (nothing reached the service), unknown (it is not known
	// whether it ran), failed (the service answered as park.retry.on says). Default
	// [locked, slow, unreachable, unknown], or what the preset says.
	On []idem.ParkOn `koanf:"on"`
	// How long the sender waits for an answer. Default 5s, or what the preset says. 0s: it gets its
	// 2xx at once, always.
	After time.Duration `koanf:"after"`
	// The status with which an accepted event is answered. Default 202, or what the preset says.
	Answer int `koanf:"answer"`
	// How old a parked event may become before it is a dead letter. Default 24h.
	MaxAge time.Duration `koanf:"max_age"`
	// How many tries may fail. Tries that provably did not run do not count. Default 10.
	Attempts int `koanf:"attempts"`
	// When a failed try is made again.
	Retry ParkRetry `koanf:"retry"`
	// Not before so long after it was accepted is an event tried first: what it speaks of may not
	// be there yet. With a delay its sender gets its 2xx at once, always. Default 0s.
	Delay time.Duration `koanf:"delay"`
	// What happens to an event that may not be tried again: hold (its workflow waits for an
	// operator's decision, and the order is kept), skip (it is a dead letter, and the next one
	// runs). Default hold.
	OnFailure idem.OnFailure `koanf:"on_failure"`
	// The signature that a parked event has when it runs: keep (the one that it came with), renew
	// (a new one with the time of sending, by the secret that the route checks with). Default keep.
	Signature idem.ParkSignature `koanf:"signature"`
	// Parked events of one workflow. Default 1000.
	MaxWaiting int `koanf:"max_waiting"`
	// Whether the first 512 bytes of each answer to a failed try are kept: tokens with the scope
	// bodies see them. Default true.
	FailedAnswers bool `koanf:"failed_answers"`
}

func defaultPark() Park {
	return Park{
		On:    []idem.ParkOn{idem.ParkLocked, idem.ParkSlow, idem.ParkUnreachable, idem.ParkUnknown},
		After: 5 * time.Second, Answer: 202, MaxAge: 24 * time.Hour, Attempts: 10, OnFailure: idem.FailureHold,
		Retry: ParkRetry{
			First: time.Second, Most: 5 * time.Minute,
			On: []StatusRange{{500, 599}, {408, 408}, {409, 409}, {423, 423}, {425, 425}, {429, 429}},
		},
		Signature: idem.SignatureKeep, MaxWaiting: 1000, FailedAnswers: true,
	}
}

// ParkRetry says when a failed try of a parked event is made again.
type ParkRetry struct {
	// The pause after the first failed try. Each further one doubles it, and a Retry-After of the
	// service may make it longer. Default 1s.
	First time.Duration `koanf:"first"`
	// The longest pause, but for Retry-After. Default 5m.
	Most time.Duration `koanf:"most"`
	// Upstream statuses after which it is tried again, whatever idempotency.keep says, and for
	// which park.on: [failed] parks. Default [5xx, 408, 409, 423, 425, 429].
	On []StatusRange `koanf:"on"`
}

// ParkStore is where the bytes of parked requests are kept.
type ParkStore struct {
	// Requests up to this size, head and body together, are kept in etcd; longer ones in dir or s3.
	// Default 16KiB, at most 256KiB. 0B: none are kept in etcd.
	Inline Size `koanf:"inline"`
	// Folder for longer requests, made with mode 0700. Every replica must see the same one. Default
	// empty: requests in data_dir, where etcd is the embedded one and s3 is not set; else longer
	// requests are not parked.
	Dir string `koanf:"dir"`
	// Bucket for longer requests, in place of dir.
	S3 S3 `koanf:"s3"`
	// File with the keys that seal requests, in etcd, too: a line for each, its ID and 32 bytes in
	// base64. The first one seals, all open. Default empty: requests are kept as they are.
	KeyFile string `koanf:"key_file" empty:"requests would be kept unsealed" reload:"true"`
	// The text of key_file. Never printed.
	Keys Secret `koanf:"-" secret:"key"`
	// Confirms that parked events may be lost with the one disk of an etcd of a single member.
	// Default false: no route parks there.
	SingleMember bool `koanf:"single_member"`
}

// S3 is a bucket, at AWS or at any server that speaks S3. The zero value of Endpoint means that
// there is none.
type S3 struct {
	// https://host or http://host:port. Default empty: no S3.
	Endpoint string `koanf:"endpoint"`
	// Name of the bucket, which is there already. Required beside endpoint.
	Bucket string `koanf:"bucket"`
	// What the names of objects begin with, without slashes at its ends. Default empty. Two
	// installations must not share one.
	Prefix string `koanf:"prefix"`
	// Region of the bucket. Default us-east-1, which suits servers without regions.
	Region string `koanf:"region"`
	// File with the ID of the access key. One trailing newline is cut. Required beside endpoint.
	AccessKeyFile string `koanf:"access_key_file" reload:"true"`
	// File with the secret of the access key. One trailing newline is cut. Required beside
	// endpoint.
	SecretKeyFile string `koanf:"secret_key_file" reload:"true"`
	// What access_key_file and secret_key_file gave. Never printed.
	AccessKey Secret `koanf:"-" secret:"access_key"`
	SecretKey Secret `koanf:"-" secret:"secret_key"`
	// Time for one call, with its retries. Default 10s. Past it a delivery is answered as if its
	// route did not park.
	RequestTimeout time.Duration `koanf:"request_timeout"`
	// How an https endpoint is verified.
	TLS ClientTLS `koanf:"tls"`
}

// KeepsRequests reports whether any route keeps the requests of events that have run.
func (c *Config) KeepsRequests() bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Requests.Keep > 0 })
}

// RequestsDir returns the folder for longer parked requests; "": there is none.
func (c *Config) RequestsDir() string {
	if c.ParkStore.Dir == "" && c.ParkStore.S3.Endpoint == "" && len(c.Etcd.Endpoints) == 0 {
		return filepath.Join(c.DataDir, "requests")
	}
	return c.ParkStore.Dir
}
