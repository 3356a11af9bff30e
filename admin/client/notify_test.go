package client

import (
	"errors"
	"strings"
	"testing"
)

func TestATestMessageSaysWhatCameOfIt(t *testing.T) {
	c := script(t, answer{200, `{"taken":false,"status":404,"answer":"no hook","problem":"the receiver answered 404"}`,
		nil}).client
	if n, err := c.TestNotify(t.Context()); err != nil || n.Taken || n.Status != 404 || n.Answer != "no hook" ||
		n.Problem == "" {
		t.Errorf("%+v, %v", n, err)
	}
	var p *Problem
	if _, err := script(t, answer{200, `{}`, nil}).client.TestNotify(t.Context()); !errors.As(err, &p) ||
		!strings.Contains(p.Error(), "does not come from Hooklock") {
		t.Errorf("of something else: %v", err)
	}
}
