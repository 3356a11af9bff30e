package link

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestEverythingButARefusalMayHaveBeenApplied(t *testing.T) {
	for _, err := range never {
		if !Definite(fmt.Errorf("wrapped: %w", err)) {
			t.Errorf("%v", err)
		}
	}
	for _, err := range []error{errors.New("any"), context.DeadlineExceeded, context.Canceled} {
		if Definite(err) {
			t.Errorf("%v", err)
		}
	}
}
