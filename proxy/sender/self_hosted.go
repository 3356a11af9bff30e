package sender

// SelfHosted is a sender that runs on its user's machines and was run against Hooklock, for the
// page of all of these.
type SelfHosted struct {
	Name, Version string
	Run           SelfHostedRun
	// Refused, Unavailable, Redirected and Silent say what it does on 409 and 429, on 503, on a
	// redirect and without an answer.
	Refused, Unavailable, Redirected, Silent string
	// EventID says what names an event.
	EventID string
	// Route is the route, as YAML in a list. It is empty if the sender has a preset.
	Route string
	// Notes says what to know beside it, in sentences.
	Notes string
}

// SelfHostedRun says how a sender was run.
type SelfHostedRun string

// How a sender was run. The zero value: once, by hand, with its settings.
const (
	RunOnce   SelfHostedRun = ""
	RunInTest SelfHostedRun = "test"          // deploy/test/senders runs it with its route
	RunAlone  SelfHostedRun = "not the route" // by hand, without this route
)
