package link

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func TestAFailedRequestIsMeasuredWithACodeOfAClosedSet(t *testing.T) {
	for code, err := range map[string]error{
		"":                   nil,
		"DEADLINE_EXCEEDED":  fmt.Errorf("wrapped: %w", context.DeadlineExceeded),
		"CANCELLED":          context.Canceled,
		"RESOURCE_EXHAUSTED": rpctypes.ErrNoSpace,
		"NOT_FOUND":          rpctypes.ErrLeaseNotFound,
		"UNKNOWN":            errors.New("anything else"),
	} {
		if got := codeOf(err); got != code {
			t.Errorf("%v: %q, want %q", err, got, code)
		}
	}
}

func TestOperationsAreNamedInSnakeCase(t *testing.T) {
	for method, name := range map[string]string{"LeaseKeepAlive": "lease_keep_alive", "Txn": "txn",
		"DeleteRange": "delete_range"} {
		if got := snakeCase(method); got != name {
			t.Errorf("%s: %s", method, got)
		}
	}
}
