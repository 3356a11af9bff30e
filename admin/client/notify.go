package client

import (
	"context"
	"net/http"
	"time"
)

// NotifyTest is what came of one test message to the receiver of notify.
type NotifyTest struct {
	Taken   bool   `json:"taken"`             // the receiver answered 2xx
	Status  int    `json:"status,omitempty"`  // what it answered. Missing: no answer came.
	Answer  string `json:"answer,omitempty"`  // the beginning of its body, on one line
	Problem string `json:"problem,omitempty"` // why the message was not taken, without the URL

	raw
}

// notifyTime is what the server takes at most for a test message.
const notifyTime = 10 * time.Second

// TestNotify has the process send one test message, and returns what the receiver answered.
func (c *Client) TestNotify(ctx context.Context) (*NotifyTest, error) {
	return ask[NotifyTest](ctx, c, call{method: http.MethodPost, path: "/v1/notify/test", wait: notifyTime,
		has: "taken"})
}
