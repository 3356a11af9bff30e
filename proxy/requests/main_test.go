package requests

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
	var err error
	if programs, err = os.MkdirTemp("", "parked-test-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(programs)
		os.Exit(code)
	}))
}

// programs is the folder of what the tests build. It goes with them.
var programs string

// execution is an ID for each n.
func execution(n byte) idem.ExecutionID {
	return idem.NewExecutionID("orders/acme", idem.MakeKey(7, [16]byte{1}), [4]byte{0, 0, 0, n})
}
