package e2e

import (
	"testing"

	"hooklock/test/testkit"
)

func TestWithoutIdempotencyEachDeliveryThatIsParkedAtOnceRuns(t *testing.T) {
	t.Parallel()
	h := own(t, bare(shared.up.URL, `
park_store: {single_member: true}
routes:
  - {name: off-now, path: "/off-now/{w}", idempotency: {enabled: false}, park: {enabled: true, after: 0s}}
`))
	path := at(t, "off-now")
	shared.on(t, path, answers(testkit.OK("done")))
	executions := map[string]bool{}
	for range 3 {
		executions[acceptedAs(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 202)] = true
	}
	if len(executions) != 3 {
		t.Errorf("three deliveries were accepted as %v", executions)
	}
	testkit.Until(t, "all three to run", func() bool { return len(shared.up.Received(path)) >= 3 })
}

func TestUnderMismatchExecuteAnotherPayloadOfAParkedEventIsParkedToo(t *testing.T) {
	t.Parallel()
	h := own(t, bare(shared.up.URL, `
park_store: {single_member: true}
routes:
  - {name: both-now, path: "/both-now/{w}", idempotency: {on_mismatch: execute}, park: {enabled: true, after: 0s}}
`))
	path := at(t, "both-now")
	work := shared.holds(t, path)
	first := acceptedAs(t, testkit.Post(t, h.Addr, path, "a", key("1")), 202)
	work.await(t)
	second := acceptedAs(t, testkit.Post(t, h.Addr, path, "b", key("1")), 202)
	if copied := acceptedAs(t, testkit.Post(t, h.Addr, path, "b", key("1")), 202); copied != second || second == first {
		t.Errorf("accepted as %s and %s, and a copy of the second as %s", first, second, copied)
	}
	work.answer <- testkit.OK("one")
	if got := work.await(t); got.Body != "b" {
		t.Errorf("%q ran", got.Body)
	}
	work.answer <- testkit.OK("two")
}

func TestADeliveryWithoutABodyAndEventIDIsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	shared.on(t, path, answers(testkit.OK("done")))
	for range 3 {
		passed(t, testkit.Post(t, shared.patient.Addr, path, ""), 200, "done", "executed")
	}
	passed(t, testkit.Post(t, shared.patient.Addr, path, "", key("1")), 200, "done", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "", key("1")), 200, "done", "replayed")
	reached(t, path, 4)
}
