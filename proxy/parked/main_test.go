package parked

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"hooklock/idem"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		child(folder)
	}
	goleak.VerifyTestMain(m)
}

// execution is an ID for each n.
func execution(n byte) idem.ExecutionID {
	return idem.NewExecutionID("orders/acme", idem.MakeKey(7, [16]byte{1}), [4]byte{0, 0, 0, n})
}
