package etcdlock

import (
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

func TestAKnownOutcomeOpensTheLockAtOnceWhateverTheReleaseDelay(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for i, end := range []idem.End{
		{Status: idem.Success, Outcome: idem.Executed, Remembered: true, Answer: &idem.Answer{Status: 200}},
		{Status: idem.Failed, Outcome: idem.Executed, Error: &idem.Failure{Code: "upstream_status"},
			Answer: &idem.Answer{Status: 500}},
	} {
		l := lockFor("w", string(rune('a'+i)))
		l.ReleaseDelay = time.Hour
		end.FinishedAt = time.Now()
		if _, err := mustClaim(t, s, l, 0).Settle(within(t, patience), end); err != nil {
			t.Fatal(err)
		}
	}
	mustClaim(t, s, lockFor("w", "next"), 0)
}
