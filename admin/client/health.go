package client

import (
	"context"
	"net/http"
	"strings"
)

// Live returns nil if the replica answers.
func (c *Client) Live(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/livez"})
	return err
}

// CodeNotReady is the code of the problem that Ready returns. The API sends it as text.
const CodeNotReady = "not_ready"

// Ready returns nil if the replica takes deliveries: it has a session and routes. A *Problem with
// CodeNotReady says why it does not.
func (c *Client) Ready(ctx context.Context) error {
	var why string
	status, err := c.do(ctx, call{method: http.MethodGet, path: "/readyz", query: query("verbose", "1"),
		accept: func(status int, body []byte) (ok bool) {
			why, ok = strings.CutPrefix(string(body), "not ready")
			return ok && status == http.StatusServiceUnavailable
		}})
	if err != nil || status == http.StatusOK {
		return err
	}
	return &Problem{Title: "not ready", Status: status, Code: CodeNotReady,
		Detail: strings.TrimSpace(strings.TrimPrefix(why, ":"))}
}

// Metrics returns the metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) { return c.raw(ctx, "/metrics") }

// OpenAPI returns the description of the API, in JSON.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) { return c.raw(ctx, "/openapi.json") }

func (c *Client) raw(ctx context.Context, path string) ([]byte, error) {
	var text []byte
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, into: &text})
	return text, err
}
