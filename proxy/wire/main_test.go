package wire

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain finds what runs on. fasthttp's own clock never ends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}
