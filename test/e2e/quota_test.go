package e2e

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"hooklock/test/testkit"
)

func TestAFloodOfNewEventsOfOneRouteIsBoundedAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	const flood = 100
	h := own(t, bare(shared.up.URL, `
routes:
  - {name: bounded, path: /flood/bounded, lock: {strategy: none}, idempotency: {new_per_second: 1}}
  - {name: free, path: /flood/free, lock: {strategy: none}}
`))
	began := time.Now()
	passed(t, testkit.Post(t, h.Addr, "/flood/bounded", "{}", key("first")), 200, "done", "executed")
	ran := 1
	for i := range flood {
		a := testkit.Post(t, h.Addr, "/flood/bounded", "{}", key(fmt.Sprint(i)))
		if a.Decision() == "executed" {
			ran++
			continue
		}
		refused{503, "too_many_new_events", "no", "throttled"}.check(t, a)
	}
	if most := 1 + int(time.Since(began).Seconds()+1); ran > most {
		t.Errorf("%d events ran, where %d may", ran, most)
	}
	for range flood { // known events are not new
		passed(t, testkit.Post(t, h.Addr, "/flood/bounded", "{}", key("first")), 200, "done", "replayed")
	}
	for i := range flood {
		passed(t, testkit.Post(t, h.Addr, "/flood/free", "{}", key(fmt.Sprint(i))), 200, "done", "executed")
	}
}

func TestTheStatusSaysHowFullAnEtcdClusterIs(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("space", ""))
	testkit.Until(t, "it is known", func() bool {
		return regexp.MustCompile(
			`http://\S+ has \d+\.\d MiB, \d+\.\d MiB of it in use, of a quota of 2048\.0 MiB`).MatchString(cli(t, h,
			"status"))
	})
}
