package config

// choice is a setting with a fixed set of values. Those that decide about deliveries are in idem. A
// new value needs a row in the documentation.
type choice interface{ Choices() []string }

// Unmatched says what happens to requests that match no route.
type Unmatched string

// The values of unmatched.
const (
	UnmatchedPass   Unmatched = "pass"
	UnmatchedReject Unmatched = "reject"
)

// Choices lists the values.
func (Unmatched) Choices() []string { return []string{"pass", "reject"} }

// OnStoreDown says what happens while etcd cannot decide.
type OnStoreDown string

// The values of on_store_down.
const (
	StoreDownReject  OnStoreDown = "reject"
	StoreDownForward OnStoreDown = "forward"
)

// Choices lists the values.
func (OnStoreDown) Choices() []string { return []string{"reject", "forward"} }

// OnSenderLimit says what happens while the sender is half way to switching the endpoint off.
type OnSenderLimit string

// The values of on_sender_limit.
const (
	SenderLimitIgnore OnSenderLimit = "ignore"
	SenderLimitPark   OnSenderLimit = "park"
)

// Choices lists the values.
func (OnSenderLimit) Choices() []string { return []string{"ignore", "park"} }

// Mode says whether decisions are carried out.
type Mode string

// The values of mode.
const (
	ModeEnforce Mode = "enforce"
	ModeObserve Mode = "observe"
)

// Choices lists the values.
func (Mode) Choices() []string { return []string{"enforce", "observe"} }

// TwinsMode says what happens to an event with the body of another.
type TwinsMode string

// The values of twins.
const (
	TwinsReport TwinsMode = "report"
	TwinsSame   TwinsMode = "same_event"
	TwinsOff    TwinsMode = "off"
)

// Choices lists the values.
func (TwinsMode) Choices() []string { return []string{"report", "same_event", "off"} }

// Scope is a right of a token of the admin API.
type Scope string

// The values of admin.tokens[].scopes.
const (
	ScopeRead   Scope = "read"
	ScopeWrite  Scope = "write"
	ScopeBodies Scope = "bodies"
)

// Choices lists the values.
func (Scope) Choices() []string { return []string{"read", "write", "bodies"} }

// LogLevel is the least severity that is logged.
type LogLevel string

// The values of log.level.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// Choices lists the values.
func (LogLevel) Choices() []string { return []string{"debug", "info", "warn", "error"} }

// LogFormat is the form of log lines.
type LogFormat string

// The values of log.format.
const (
	LogJSON LogFormat = "json"
	LogText LogFormat = "text"
)

// Choices lists the values.
func (LogFormat) Choices() []string { return []string{"json", "text"} }
