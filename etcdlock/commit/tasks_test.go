package commit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/link"
	"hooklock/idem"
)

// The last try is cut off when the caller's time is up. What etcd said to those before is what a
// person has to know.
func TestWhatIsRepeatedInVainFailsWithTheLastReasonThatEtcdGave(t *testing.T) {
	for name, cut := range map[string]func(context.Context) error{
		"the request is cut off": func(ctx context.Context) error { return ctx.Err() },
		"it never leaves":        func(context.Context) error { return link.ErrNotSent },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				tries := 0
				err := NewTasks().Repeat(ctx, func(ctx context.Context) (bool, error) {
					if tries++; tries < 3 {
						return false, rpctypes.ErrNoSpace
					}
					<-ctx.Done()
					return false, cut(ctx)
				})
				if !errors.Is(err, idem.ErrStoreUnavailable) ||
					!strings.Contains(err.Error(), "disarm the NOSPACE alarm") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
