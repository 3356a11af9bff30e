package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// DefaultURL is the address of the admin API unless the setting admin.listen has another one.
const DefaultURL = "http://127.0.0.1:8079"

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 32 << 20

// Options configure a Client. With the zero value it calls DefaultURL without a token.
type Options struct {
	// URL is the address of the API: http://HOST:PORT, https://HOST:PORT, or unix:///PATH for a
	// socket. "" is DefaultURL. HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment apply, but
	// not to addresses of this machine.
	URL string
	// Token returns the token of each call. nil, or a Token that returns "", sends none.
	Token     TokenSource
	UserAgent string // UserAgent names the program in logs. "" is "hooklock-client".
	// Timeout ends each call, not counting the time that the server was asked to wait. 0 is 15 s.
	Timeout time.Duration
	TLS     TLS // TLS has the certificates for https.
}

// Client calls one admin API. It is safe for concurrent use. New makes one.
type Client struct {
	base    string // no slash at its end
	token   TokenSource
	agent   string
	timeout time.Duration
	http    *http.Client
}

// New makes a Client. It sends nothing yet: an error is about the options.
func New(o Options) (*Client, error) {
	o.URL = cmp.Or(o.URL, DefaultURL)
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("parse URL: %w", withoutURL(err))
	}
	transport, err := newTransport(u, o.TLS)
	if err != nil {
		return nil, err
	}
	base := strings.TrimRight(o.URL, "/")
	if u.Scheme == "unix" {
		base = "http://localhost"
	}
	return &Client{
		base: base, token: o.Token, agent: cmp.Or(o.UserAgent, "hooklock-client"),
		timeout: cmp.Or(o.Timeout, 15*time.Second),
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a token is for the configured server, and for no other
		}},
	}, nil
}

// Close closes idle connections. It does not end calls.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call is one request of the API.
type call struct {
	method string
	path   string // escaped, from the base
	query  url.Values
	body   any           // sent as JSON; nil = no body
	wait   time.Duration // how long the server was asked to wait
	bearer string        // instead of the client's token
	into   any           // what the JSON of a 2xx is decoded to; nil = it has none
	// a member that every such JSON of Hooklock has, in each release: an answer without it comes
	// from another service
	has string
	// accept lets another status than 2xx be an answer: it reports whether body was one, and not a
	// problem.
	accept func(status int, body []byte) bool
}

// sendOnce sends a call once and returns the status of its answer.
func (c *Client) sendOnce(ctx context.Context, call call) (status int, err error) {
	what := call.method + " " + call.path
	ctx, cancel := context.WithTimeout(ctx, c.timeout+call.wait)
	defer cancel()
	request, err := c.newRequest(ctx, call)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, withoutURL(err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: read answer: %w", what, err)
	case len(body) > maxAnswer:
		return 0, fmt.Errorf("%s: the answer is longer than %d bytes", what, maxAnswer)
	case call.accept != nil && call.accept(answer.StatusCode, body):
		return answer.StatusCode, nil
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return 0, newProblem(answer, body)
	case call.into == nil && call.method != http.MethodGet && answer.StatusCode != http.StatusNoContent:
		// a change responds with nothing, or with an object
		return 0, newProblem(answer, nil)
	case call.into == nil:
		return answer.StatusCode, nil
	case call.has != "" && !hasMember(body, call.has):
		return 0, newProblem(answer, nil)
	}
	if text, ok := call.into.(*[]byte); ok {
		*text = body
	} else if err := json.Unmarshal(body, call.into); err != nil {
		return 0, fmt.Errorf("%s: this is not an answer of Hooklock's admin API: %w", what, err)
	}
	if object, ok := call.into.(textKeeper); ok {
		object.keepText(body)
	}
	return answer.StatusCode, nil
}

// ask sends a call whose answer is a T.
func ask[T any](ctx context.Context, c *Client, call call) (*T, error) {
	answer := new(T)
	call.into = answer
	if _, err := c.sendOnce(ctx, call); err != nil {
		return nil, err
	}
	return answer, nil
}

// get asks for a T.
func get[T any](ctx context.Context, c *Client, path, has string, query url.Values) (*T, error) {
	return ask[T](ctx, c, call{method: http.MethodGet, path: path, query: query, has: has})
}

// raw keeps the JSON of the object that embeds it. Client.sendOnce sets that of a whole answer,
// UnmarshalJSON that of an item of a list.
type raw struct{ text []byte }

// textKeeper is an answer that embeds raw.
type textKeeper interface{ keepText(text []byte) }

var _ textKeeper = (*raw)(nil)

// RawJSON returns the object as the server sent it, with the fields that this release does not
// know. Do not change it.
func (r *raw) RawJSON() []byte { return r.text }

// read reads the object into plain, which is it without its methods, and keeps it for RawJSON.
func (r *raw) read(text []byte, plain any) error {
	r.keepText(text)
	return json.Unmarshal(text, plain)
}

func (r *raw) keepText(text []byte) { r.text = bytes.Clone(bytes.TrimSpace(text)) }

// hasMember reports whether body may be an answer with that member. A body that is no JSON object
// fails when it is decoded.
func hasMember(body []byte, member string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return true
	}
	_, there := members[member]
	return there
}

// errNoName prevents a call about one thing from becoming one about all of them.
var errNoName = errors.New("the name of what it is about is empty")

func (c *Client) newRequest(ctx context.Context, call call) (*http.Request, error) {
	if strings.HasSuffix(call.path, "/") || strings.Contains(call.path, "//") {
		return nil, errNoName
	}
	target := c.base + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	var body io.Reader
	if call.body != nil {
		text, err := json.Marshal(call.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, target, body)
	if err != nil {
		return nil, err
	}
	bearer := call.bearer
	if bearer == "" && c.token != nil {
		if bearer, err = c.token(); err != nil {
			return nil, err
		}
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json, application/problem+json")
	request.Header.Set("User-Agent", c.agent)
	return request, nil
}

// withoutURL removes the URL, which the caller knows, and which may hold a password.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// pathSegment escapes text to be one segment of a path. A segment of one or two dots would be taken
// for a way up.
func pathSegment(text string) string {
	if text == "." || text == ".." {
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}

// queryOfPairs makes a query of pairs of name and value; empty values are left out.
func queryOfPairs(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// queryOf makes a query of a struct whose fields name their parameters by a tag. A field with its
// zero value is left out.
func queryOf(selection any) url.Values {
	q := url.Values{}
	for field, value := range reflect.ValueOf(selection).Fields() {
		if !value.IsZero() {
			q.Set(field.Tag.Get("query"), fmt.Sprint(value))
		}
	}
	return q
}

// duration is a time span that is a Go duration string in JSON, such as "30m0s".
type duration time.Duration

// MarshalText writes it.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Time is a time as the API writes it: RFC 3339 with milliseconds, in UTC. The zero value is an
// absent time.
type Time struct{ time.Time }

const timeLayout = `"2006-01-02T15:04:05.000Z07:00"`

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return t.UTC().AppendFormat(nil, timeLayout), nil }

// Backup writes a copy of the embedded etcd of the replica to w: an etcd snapshot, with its
// checksum at the end. After an error, what was written is of no use. It may take minutes:
// Options.Timeout does not end it, ctx does. A *Problem with CodeNoEmbeddedEtcd means that the
// replica has none.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	return c.streamTo(ctx, call{path: "/v1/embedded/backup"}, "application/octet-stream", w)
}

// streamTo writes what a GET answers, which is of that media type, to w while it comes.
func (c *Client) streamTo(ctx context.Context, what call, media string, w io.Writer) error {
	what.method = http.MethodGet
	request, err := c.newRequest(ctx, what)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what.method, what.path, err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what.method, what.path, withoutURL(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("%s %s: read answer: %w", what.method, what.path, err)
		}
		return newProblem(answer, body)
	}
	if answer.Header.Get("Content-Type") != media {
		return newProblem(answer, nil)
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("%s %s: the copy was cut off: %w; see the log of hooklock, and try again", what.method,
			what.path, err)
	}
	return nil
}
