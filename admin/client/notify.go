package client

import (
	"context"
	"net/http"
	"time"
)

// NotifyTest is what came of one test message to the receiver of notify.
type NotifyTest struct {
	Taken bool `json:"taken"` // the receiver answered 2xx
	// Status is what it answered, Answer the beginning of its body on one line; 0: no answer came.
	Status int    `json:"status,omitempty"`
	Answer string `json:"answer,omitempty"`
	// Problem is why it was not taken; "" = it was. It does not have the URL.
	Problem string `json:"problem,omitempty"`

	raw
}

// notifyTime is what the server takes at most for a test message.
const notifyTime = 10 * time.Second

// TestNotify has the process send one test message, and returns what the receiver answered.
func (c *Client) TestNotify(ctx context.Context) (*NotifyTest, error) {
	return ask[NotifyTest](ctx, c, call{method: http.MethodPost, path: "/v1/notify/test", wait: notifyTime,
		has: "taken"})
}
