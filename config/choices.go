package config

// choice is a setting with a fixed set of values. A new value needs a row in the documentation.
type choice interface{ choices() []string }

// Unmatched says what happens to requests that match no route.
type Unmatched string

// The values of unmatched.
const (
	UnmatchedPass   Unmatched = "pass"
	UnmatchedReject Unmatched = "reject"
)

func (Unmatched) choices() []string { return []string{"pass", "reject"} }

// OnMissing says what happens to a delivery without an event ID.
type OnMissing string

// The values of on_missing_event_id.
const (
	MissingPayload OnMissing = "payload"
	MissingReject  OnMissing = "reject"
	MissingPass    OnMissing = "pass"
)

func (OnMissing) choices() []string { return []string{"payload", "reject", "pass"} }

// Strategy says what a delivery does when another one has the lock.
type Strategy string

// The values of lock.strategy.
const (
	StrategyFailFast Strategy = "fail_fast"
	StrategyWait     Strategy = "wait"
	StrategySkip     Strategy = "skip"
	StrategyNone     Strategy = "none"
)

func (Strategy) choices() []string { return []string{"fail_fast", "wait", "skip", "none"} }

// InFlight says what a copy of a running event gets.
type InFlight string

// The values of idempotency.in_flight.
const (
	InFlightConflict InFlight = "conflict"
	InFlightAttach   InFlight = "attach"
)

func (InFlight) choices() []string { return []string{"conflict", "attach"} }

// OnMismatch says what a known key with another fingerprint gets.
type OnMismatch string

// The values of idempotency.on_mismatch.
const (
	MismatchReject  OnMismatch = "reject"
	MismatchReplay  OnMismatch = "replay"
	MismatchExecute OnMismatch = "execute"
	// MismatchReplayUnsigned is replay where no signature is checked.
	MismatchReplayUnsigned OnMismatch = "replay_unsigned"
)

func (OnMismatch) choices() []string {
	return []string{"reject", "replay", "execute", "replay_unsigned"}
}

// OnUnknown says what an event gets whose earlier outcome is unknown.
type OnUnknown string

// The values of idempotency.on_unknown.
const (
	UnknownRetry OnUnknown = "retry"
	UnknownBlock OnUnknown = "block"
)

func (OnUnknown) choices() []string { return []string{"retry", "block"} }

// OnStoreDown says what happens while etcd cannot decide.
type OnStoreDown string

// The values of on_store_down.
const (
	StoreDownReject  OnStoreDown = "reject"
	StoreDownForward OnStoreDown = "forward"
)

func (OnStoreDown) choices() []string { return []string{"reject", "forward"} }

// Mode says whether decisions are carried out.
type Mode string

// The values of mode.
const (
	ModeEnforce Mode = "enforce"
	ModeObserve Mode = "observe"
)

func (Mode) choices() []string { return []string{"enforce", "observe"} }

// Scope is a right of a token of the admin API.
type Scope string

// The values of admin.tokens[].scopes.
const (
	ScopeRead  Scope = "read"
	ScopeWrite Scope = "write"
)

func (Scope) choices() []string { return []string{"read", "write"} }

// LogLevel is the least severity that is logged.
type LogLevel string

// The values of log.level.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

func (LogLevel) choices() []string { return []string{"debug", "info", "warn", "error"} }

// LogFormat is the form of log lines.
type LogFormat string

// The values of log.format.
const (
	LogJSON LogFormat = "json"
	LogText LogFormat = "text"
)

func (LogFormat) choices() []string { return []string{"json", "text"} }
