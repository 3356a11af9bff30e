package config

import (
	"time"

	"hooklock/idem"
)

// Idempotency is the rule that an event whose outcome is known does not run again.
type Idempotency struct {
	// false: every delivery is its own event, and only the lock guards it. Default true.
	Enabled bool `koanf:"enabled"`
	// What a duplicate of a running event gets: conflict is 409, attach waits for the first one's
	// answer. Default conflict.
	InFlight idem.InFlight `koanf:"in_flight"`
	// How long a finished execution answers its duplicates at least, counted from its end. Default
	// 168h. It must be longer than the sender's whole retry schedule, or a late retry runs the
	// event again.
	Retention time.Duration `koanf:"retention"`
	// The same where the fingerprint is the key: equal bodies after that are new events, for
	// certain an eighth later. Default 10m.
	PayloadRetention time.Duration `koanf:"payload_retention"`
	// New events that a process takes for this route in a second; more are 503, and nothing is
	// executed. Default 0: no bound. Where strangers reach a route without a signature, it keeps
	// them from filling the etcd of all routes.
	NewPerSecond int `koanf:"new_per_second"`
	// Longest answer that is kept for duplicates; of a longer one they get the status without a
	// body. Default 64KiB, at most 512KiB. 0B keeps no body.
	ReplayBody Size `koanf:"replay_body"`
	// How long the first answer is kept at least: after that duplicates get its status, with
	// Hooklock-Recorded: false. Answers of a few bytes stay longer. Default 10m. A time that is not
	// shorter than retention keeps it that long.
	ReplayRetention time.Duration `koanf:"replay_retention"`
	// What another fingerprint gets under the key of an event that settled, runs or waits: reject
	// is 422, replay is the first answer (the event ID alone decides), execute runs it. After a
	// failure it runs as the next attempt. Without verify, any client that knows an event's ID
	// could settle it with a body of its own, and the event itself would never run: replay is
	// refused there; if strangers are kept out by other means, write replay_unsigned. Default
	// reject.
	OnMismatch idem.OnMismatch `koanf:"on_mismatch"`
	// Headers that must be equal for a duplicate to get more of the first answer than its status,
	// beside those that look like a credential by their name (Authorization, Cookie, X-Api-Key,
	// …-Token …). Default none: with verify, the signature decides.
	Credentials []string `koanf:"credentials"`
	// What an event gets whose earlier outcome is unknown: retry runs it again, block is 409 until
	// an operator allows it again, ask is 409 until the service has said what became of it (ask),
	// and without an answer as block. Default retry.
	OnUnknown idem.OnUnknown `koanf:"on_unknown"`
	// Attempts of an event that may fail or end with an unknown outcome, tries of a parked one
	// included. After the last one the event waits for a person: 409, or, if it is parked, as
	// park.on_failure says. Default 20. 0: any number.
	Attempts int `koanf:"attempts"`
	// Upstream statuses that settle the event: 2xx, 404, 200-299. Default 2xx. After any other
	// answer the event may run again.
	Keep []StatusRange `koanf:"keep"`
	// Upstream statuses that say nothing about the effect, where the upstream is itself a proxy:
	// 502, 504. Default none.
	Unknown []StatusRange `koanf:"unknown"`
}

// Ask says how the service is asked what became of an event of unknown outcome, with one GET. The
// zero value of URL means that it is not asked.
type Ask struct {
	// Template of what is asked: a path of the upstream, /api/orders/{body.order_id}, or a URL.
	// Values are escaped. Default empty: nothing.
	URL string `koanf:"url"`
	// The answer that says that the event was executed. All that is written must fit.
	Executed Reply `koanf:"executed"`
	// The answer that says that it was not, so that it may run again. Any other answer says
	// nothing.
	NotExecuted Reply `koanf:"not_executed"`
	// How long the service is left alone before the first question; lock.release_delay if that is
	// longer. Default 2s.
	After time.Duration `koanf:"after"`
	// How many questions, with pauses of 1s, 2s, 4s … between them. Then the event waits for a
	// person. Default 5.
	Attempts int `koanf:"attempts"`
	// File with the value of the header Authorization: "Bearer …". One trailing newline is cut.
	// Default empty: none is sent.
	AuthorizationFile string `koanf:"authorization_file"`
	// Environment variable with it, instead of authorization_file. Default empty.
	AuthorizationEnv string `koanf:"authorization_env"`
	// What authorization_file or authorization_env gave. Never printed.
	Authorization Secret `koanf:"-" secret:"authorization"`
}

// Reply describes an answer. The zero value describes none.
type Reply struct {
	// Statuses: [200], [2xx]. Required.
	Status []StatusRange `koanf:"status"`
	// Members of a JSON body and the text that each must have: {state: paid, data.kind: order}.
	// Default none: the status alone decides.
	Body Members `koanf:"body"`
}
