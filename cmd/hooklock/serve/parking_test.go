package serve

import (
	"context"
	"slices"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/proxy/requests"
	"hooklock/proxy/telemetry"
)

// TestWhatIsCalledOffIsNoFailureOfTheStore: a service that answers while its request is being kept
// is nothing to be woken up for.
func TestWhatIsCalledOffIsNoFailureOfTheStore(t *testing.T) {
	id := idem.NewExecutionID("w", "", [4]byte{1})
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	off, callOff := context.WithCancel(t.Context())
	callOff()
	keeper, err := requests.Open(requests.Options{Dir: t.TempDir() + "/requests"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keeper.Close(context.Background()) })
	for name, c := range map[string]struct {
		ctx  context.Context
		told []string
	}{"called off": {off, nil}, "too late": {late, []string{telemetry.KeepRequest}}} {
		var told []string
		store := requestStore{keeper, func(operation string, _ idem.ExecutionID, _ error) {
			told = append(told, operation)
		}}
		if _, err := store.Keep(c.ctx, id, &requests.Request{Arrived: time.Now(), Head: []byte("x")}); err == nil ||
			!slices.Equal(told, c.told) {
			t.Errorf("%s: %v is told of %v", name, told, err)
		}
	}
}
