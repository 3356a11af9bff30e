package e2e

import (
	"regexp"
	"testing"

	"hooklock/test/testkit"
)

// A sender that corrects its body, or that counts its attempts there, is served: of what failed,
// nothing is protected.
func TestAfterAFailureTheEventRunsWithOtherBytesAndTheStorySaysWhatDiffers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		route, first string // of the service; "" = the connection breaks
		told         int
	}{
		"a malformed body":          {"plain", testkit.Reply(400, "malformed"), 400},
		"an error":                  {"plain", testkit.Reply(500, "no"), 500},
		"an unknown outcome":        {"plain", "", 502},
		"an error, and block":       {"block", testkit.Reply(500, "no"), 500},
		"an error that it may keep": {"keep", testkit.Reply(500, "no"), 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, c.route)
			shared.on(t, path, answers(c.first, testkit.OK("ran")))
			if a := testkit.Post(t, shared.patient.Addr, path, `{"id":1,"attempt":1}`, key("1")); a.Status != c.told {
				t.Fatal(a)
			}
			a := testkit.Post(t, shared.patient.Addr, path+"?again=1", `{"id":1,"attempt":2}`, key("1"))
			passed(t, a, 200, "ran", "executed")
			refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t,
				// now the second one's bytes are the event's
				testkit.Post(t, shared.patient.Addr, path, `{"id":1,"attempt":1}`, key("1")))
			passed(t, testkit.Post(t, shared.patient.Addr, path+"?again=1", `{"id":1,"attempt":2}`, key("1")), 200,
				"ran", "replayed")

			out := cli(t, shared.patient, "show", a.Execution())
			if !regexp.MustCompile(`(?m)^` + a.Execution() + ` .* query, body `).MatchString(out) {
				t.Errorf("it does not say what the second attempt has otherwise:\n%s", out)
			}
		})
	}
}

func TestWhatSettledAnEventOrWaitsForAPersonBindsItsBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ route, first string }{
		"a success":                 {"plain", testkit.OK("done")},
		"a failure that is kept":    {"keep", testkit.Reply(404, "never")},
		"an unknown outcome, block": {"block", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, c.route)
			shared.on(t, path, answers(c.first, testkit.OK("ran")))
			testkit.Post(t, shared.patient.Addr, path, `{"attempt":1}`, key("1"))
			refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t,
				testkit.Post(t, shared.patient.Addr, path, `{"attempt":2}`, key("1")))
			reached(t, path, 1)
		})
	}
}
