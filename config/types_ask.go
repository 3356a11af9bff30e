package config

import "time"

// Ask says how the service is asked what became of an event of unknown outcome, with one GET. The zero value of URL means that it is not asked.
type Ask struct {
	// Template of what is asked: a path of the upstream, /api/orders/{body.order_id}, or a URL. Values are escaped. Default empty: nothing.
	URL string `koanf:"url"`
	// The answer that says that the event was executed. All that is written must fit.
	Executed Reply `koanf:"executed"`
	// The answer that says that it was not, so that it may run again. Any other answer says nothing.
	NotExecuted Reply `koanf:"not_executed"`
	// How long the service is left alone before the first question; lock.release_delay if that is longer. Default 2s.
	After time.Duration `koanf:"after"`
	// How many questions, with pauses of 1s, 2s, 4s … between them. Then the event waits for a person. Default 5.
	Attempts int `koanf:"attempts"`
	// File with the value of the header Authorization: "Bearer …". One trailing newline is cut. Default empty: none is sent.
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
	// Members of a JSON body and the text that each must have: {state: paid, data.kind: order}. Default none: the status alone decides.
	Body Members `koanf:"body"`
}
