package client

import (
	"context"
	"net/http"
	"time"
)

// NotifyTest is what came of a test message to the receiver that notify.url_file names.
type NotifyTest struct {
	Taken   bool   `json:"taken"`             // the receiver answered with a 2xx
	Status  int    `json:"status,omitempty"`  // the status of its answer; absent if none came
	Answer  string `json:"answer,omitempty"`  // the beginning of its body, in one line
	Problem string `json:"problem,omitempty"` // why the message was not taken; the URL is not in it

	raw
}

// notifyTime is what the server takes at most for a test message.
const notifyTime = 10 * time.Second

// TestNotify has the replica send a test message, and returns what the receiver answered.
func (c *Client) TestNotify(ctx context.Context) (*NotifyTest, error) {
	return ask[NotifyTest](ctx, c, call{method: http.MethodPost, path: "/v1/notify/test", wait: notifyTime,
		has: "taken"})
}
