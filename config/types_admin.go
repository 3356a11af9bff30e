package config

import "time"

// Admin is the listener of the admin API, and its tokens.
type Admin struct {
	// host:port. Default 127.0.0.1:8079. Without tokens it must be a loopback address.
	Listen string `koanf:"listen"`
	// Names that the Host header of a request may have, beside localhost and addresses; the case
	// does not matter. Default none.
	Hosts []string `koanf:"hosts" reload:"true"`
	// Header in which a proxy names the user that it has authenticated. The audit log then has
	// PERSON (TOKEN). Default empty: none.
	UserHeader string `koanf:"user_header" reload:"true"`
	// Addresses or networks of that proxy, such as 10.0.0.5 or 10.0.0.0/24: the header is read from
	// there alone. Default none.
	UserHeaderFrom []string `koanf:"user_header_from" reload:"true"`
	// Serve /debug/pprof, to tokens with the scope write. Default false.
	Pprof bool `koanf:"pprof"`
	// Certificate of the listener.
	TLS AdminTLS `koanf:"tls"`
	// Tokens of the API and their rights. Default none: reads need no token, and changes need the
	// one that is generated at <data_dir>/admin.token.
	Tokens []Token `koanf:"tokens"`
}

// AdminTLS is the certificate of the admin listener, and the authorities of its clients. The zero
// value means plain text.
type AdminTLS struct {
	// Certificate chain, PEM. Default empty: no TLS.
	CertFile string `koanf:"cert_file" empty:"the listener would speak plain HTTP"`
	// Private key of cert_file, PEM. Default empty: no TLS.
	KeyFile string `koanf:"key_file"`
	// Certificates, PEM, that a client's certificate must lead to; a client without one is turned
	// away. A token is needed all the same. Default empty: clients are not asked for a certificate.
	ClientCAFile string `koanf:"client_ca_file" empty:"clients would not be asked for a certificate"`
}

// Token is a token of the admin API.
type Token struct {
	// Unique name: letters, digits and . _ - @. Required. The audit line and abortedBy show it.
	Name string `koanf:"name"`
	// File with the token. One trailing newline is cut. Default empty.
	TokenFile string `koanf:"token_file"`
	// Environment variable with the token, instead of token_file. Default empty.
	TokenEnv string `koanf:"token_env"`
	// Its rights: read shows locks and executions, write changes them, bodies shows what senders
	// sent. Default [read].
	Scopes []Scope `koanf:"scopes"`
	// Patterns of the workflows that it sees; * is any characters, / too. Default ["*"]: all of
	// them.
	Workflows []string `koanf:"workflows"`
	// The token that token_file or token_env gave. Never printed. It is the zero Secret if the file
	// or variable is missing and Load does not need it: then no request matches it.
	Token Secret `koanf:"-" secret:"token"`
}

// Health is a listener with /livez, /readyz and /metrics alone.
type Health struct {
	// host:port. Default empty: these paths are served on the admin listener only.
	Listen string `koanf:"listen"`
}

// Log says what is logged and how.
type Log struct {
	// debug, info, warn or error. Default info.
	Level LogLevel `koanf:"level"`
	// json (one object a line) or text (slog's key=value). Default json; where standard error is a
	// terminal and nothing is said here, readable lines, which begin with the time of day, the
	// level and the event.
	Format LogFormat `koanf:"format"`
	// Of the deliveries that went well, one in so many has its lines; 0: none has. What went wrong
	// always has its lines. All replicas pick the same ones, by trace ID. Default 1: each has its
	// lines.
	Sample int `koanf:"sample" reload:"true"`
	// Whether lines about a delivery have its event ID and its labels. Default true; false if
	// readers of the log may not see event IDs.
	EventID bool `koanf:"event_id" reload:"true"`
}

// Notify says where messages go about what needs attention: one when it begins, and one when it is
// over. The zero value of URL means that no message is sent.
type Notify struct {
	// File with the URL to which messages are posted as JSON, {"text": …}: an incoming webhook of
	// Slack, Mattermost, Rocket.Chat or Google Chat. One trailing newline is cut. Default empty: no
	// messages.
	URLFile string `koanf:"url_file" reload:"true"`
	// Environment variable with the URL, instead of url_file. Default empty.
	URLEnv string `koanf:"url_env" reload:"true"`
	// The URL that url_file or url_env gave. Never printed.
	URL Secret `koanf:"-" secret:"url"`
	// How often the message about something that lasts is sent again. Default 1h, at least 1m. 0s:
	// it is sent once.
	Every time.Duration `koanf:"every" reload:"true"`
	// The routes whose items are sent; what is about no route, such as etcd or a replica, always
	// is. Default none: all routes.
	Routes []string `koanf:"routes" reload:"true"`
}
