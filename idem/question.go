package idem

import "time"

// AskPolicy is how a route asks the service what became of an event of unknown outcome.
type AskPolicy struct {
	// After is how long the service is left alone before the first question; it may still be at
	// work.
	After time.Duration
	// Attempts bounds the questions about one event. At least 1.
	Attempts int
	// Answer is the status that duplicates get of an event that the service has executed.
	Answer int
}

// Pauses before the questions after the first one: doubled each time.
const (
	firstQuestionPause = time.Second
	mostQuestionPause  = time.Minute
)

// Pause returns how long a process waits before question n, which is 0 for the first one.
func (p *AskPolicy) Pause(n int) time.Duration {
	switch {
	case n == 0:
		return p.After
	case n > 6: // 64 s
		return mostQuestionPause
	}
	return firstQuestionPause << (n - 1)
}

// QuestionTimeout bounds one question.
const QuestionTimeout = 10 * time.Second

// askWindow returns for how long the lock of an event stays closed for an answer: as long as all
// questions take at most.
func (p *AskPolicy) askWindow() time.Duration {
	var window time.Duration
	for n := range p.Attempts {
		window += p.Pause(n) + QuestionTimeout
	}
	return window
}

// Question is what an execution brings with it, to find out what became of it: the ledger asks
// nothing, and keeps it.
type Question struct {
	// URL is a URL, or a path of the upstream.
	URL string `json:"url"`
	// Window is for how long the lock stays closed, after an unknown outcome, for an answer.
	Window time.Duration `json:"windowNs"`
}

// newQuestion returns what is asked at url; nil: nothing, because p is nil or url is "".
func (p *AskPolicy) newQuestion(url string) *Question {
	if p == nil || url == "" {
		return nil
	}
	return &Question{URL: url, Window: p.askWindow()}
}

// OpenQuestion is a question about an execution that ended with an unknown outcome, and was not
// answered yet.
type OpenQuestion struct {
	Execution ExecutionID `json:"-"`               // in the key of the question
	Route     string      `json:"route"`           // of the execution, whose policy says how often it is asked
	URL       string      `json:"url"`             // where the service is asked
	Asked     int         `json:"asked,omitempty"` // how often so far

	Revision int64 `json:"-"` // mod revision of its key
	Lease    int64 `json:"-"` // the ledger's name for the lease that it is on; opaque to idem
}

// Asked is what the service said of an execution of unknown outcome.
type Asked struct {
	// Outcome is what follows from it. Unknown: no answer decided it, and a person has to.
	Outcome Outcome   `json:"outcome"`
	At      time.Time `json:"at"`
	URL     string    `json:"url"`
	Status  int       `json:"status,omitempty"` // of the last answer; 0 = none came
	Detail  string    `json:"detail,omitempty"` // why it decided nothing; "" = it did
	Times   int       `json:"times"`            // how often the service was asked
}
