package e2e

import (
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// TestDuplicatesMeetWhileARouteGoesToStrategyNone: in a rolling update one replica has strategy
// none already, and the other one has not.
func TestDuplicatesMeetWhileARouteGoesToStrategyNone(t *testing.T) {
	t.Parallel()
	prefix := ownPrefix()[1:]
	locks := shared.config(prefix, "")
	const route, lock = `workflow: "hold/{path.w}", lock: {`, "strategy: none, "
	none := strings.Replace(locks, route, route+lock, 1)
	if none == locks {
		t.Fatal("the stage has no such route")
	}
	replicas := map[string]*testkit.Hooklock{"locks": own(t, locks), "none": own(t, none)}
	for name, order := range map[string][2]string{"to none": {"locks", "none"}, "back": {"none", "locks"}} {
		t.Run(name, func(t *testing.T) {
			before, after := replicas[order[0]], replicas[order[1]]
			path := at(t, "hold")
			work := shared.holds(t, path)
			first := testkit.GoPost(t, before.Addr, path, "{}", key("1"))
			execution := work.await(t).Header.Get("Hooklock-Execution")
			running := refused{409, "execution_in_flight", "no", "in_flight"}
			a := testkit.Post(t, after.Addr, path, "{}", key("1"))
			running.check(t, a)
			conflict(t, a, execution, strings.TrimPrefix(path, "/"))
			work.answer <- accepted
			passed(t, testkit.Receive(t, "the answer of the first", first), 202, "later", "executed")
			a = testkit.Post(t, after.Addr, path, "{}", key("1"))
			running.check(t, a)
			conflict(t, a, execution, strings.TrimPrefix(path, "/"))
			reached(t, path, 1)
		})
	}
}
