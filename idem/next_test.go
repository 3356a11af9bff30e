package idem_test

import (
	"slices"
	"testing"

	"hooklock/idem"
)

func TestWhatAnExecutionDoes(t *testing.T) {
	for name, c := range map[string]struct {
		now  idem.Situation
		does idem.Action
	}{
		"its sender waits": {idem.Situation{SenderWaits: true}, idem.ActCall},
		"its sender waits, and a newer event counts": {idem.Situation{SenderWaits: true,
			Stale: idem.StaleSkipped}, idem.ActSupersede},
		"its sender waits, and a newer one went through": {idem.Situation{SenderWaits: true,
			Stale: idem.StaleRefused}, idem.ActRelease},
		"its sender gets an answer": {idem.Situation{SenderWaits: true, After: idem.ToSettle},
			idem.ActSettle},
		"its sender learns that nothing was sent": {idem.Situation{SenderWaits: true, After: idem.ToRelease},
			idem.ActRelease},
		"its sender gets an answer, and the service goes on": {idem.Situation{SenderWaits: true, After: idem.ToHold},
			idem.ActHold},
		"its sender is told that it is accepted": {idem.Situation{SenderWaits: true, After: idem.ToSettle,
			MayPark: true}, idem.ActPark},
		"nothing is in the way":      {idem.Situation{}, idem.ActCall},
		"the same, and it has slots": {idem.Situation{HasSlots: true}, idem.ActCall},
		"another process has it": {idem.Situation{Stop: idem.StopLost,
			After: idem.ToSettle}, idem.ActLeave},
		"an answer came": {idem.Situation{After: idem.ToSettle, Ending: true},
			idem.ActSettle},
		"the service goes on": {idem.Situation{After: idem.ToHold}, idem.ActHold},
		"a try failed, and it was cancelled": {idem.Situation{After: idem.ToTryAgain,
			Stop: idem.StopAbort}, idem.ActRecordTry},
		"a person has to see how it ended": {idem.Situation{After: idem.ToBlock}, idem.ActBlock},
		"no further try is allowed": {idem.Situation{After: idem.ToDeadLetter, TooOld: true},
			idem.ActDeadLetter},
		"the process ends": {idem.Situation{Ending: true, Stop: idem.StopAbort},
			idem.ActHandOver},
		"it was cancelled": {idem.Situation{Stop: idem.StopAbort, Unrouted: true},
			idem.ActAbort},
		"it was skipped": {idem.Situation{Stop: idem.StopSkip, Paused: true},
			idem.ActSkip},
		"the session has ended": {idem.Situation{Stop: idem.StopNotRenewed, TooOld: true},
			idem.ActAwaitLock},
		"the route is gone": {idem.Situation{Unrouted: true, TooOld: true},
			idem.ActHandOver},
		"it is too old": {idem.Situation{TooOld: true, Blocked: true},
			idem.ActExpire},
		"it is too old and paused": {idem.Situation{TooOld: true, Paused: true},
			idem.ActAwaitChange},
		"it waits for a person": {idem.Situation{Blocked: true, Early: true},
			idem.ActAwaitChange},
		"a limit is full": {idem.Situation{Full: true}, idem.ActAwaitChange},
		"it is paused, and has slots": {idem.Situation{Paused: true, HasSlots: true},
			idem.ActFreeSlots},
		"it is not due": {idem.Situation{Early: true, OutOfTurn: true},
			idem.ActAwaitTime},
		"it is not due, and has slots": {idem.Situation{Early: true, HasSlots: true},
			idem.ActFreeSlots},
		"the process makes no more tries": {idem.Situation{OutOfTurn: true, HasSlots: true},
			idem.ActAwaitTurn},
		"its try is of unknown outcome, and the service says": {idem.Situation{MustAsk: true, OutOfTurn: true,
			Stale: idem.StaleSkipped}, idem.ActAsk},
		"the same, but it is not due": {idem.Situation{MustAsk: true, Early: true},
			idem.ActAwaitTime},
		"a newer event counts for it": {idem.Situation{Stale: idem.StaleSkipped},
			idem.ActSupersede},
		"a newer event went through": {idem.Situation{Stale: idem.StaleRefused},
			idem.ActRefuse},
		"the same, but it has not its turn": {idem.Situation{Stale: idem.StaleSkipped,
			OutOfTurn: true}, idem.ActAwaitTurn},
		"a newer event, and it is not due": {idem.Situation{Stale: idem.StaleRefused, Early: true},
			idem.ActAwaitTime},
		"a newer event, and it was cancelled": {idem.Situation{Stale: idem.StaleRefused,
			Stop: idem.StopAbort}, idem.ActAbort},
	} {
		if does := idem.Next(&c.now); does != c.does {
			t.Errorf("%s: %d, want %d", name, does, c.does)
		}
	}
}

// eachSituation calls visit with all of an accepted execution.
func eachSituation(visit func(s idem.Situation, does idem.Action)) {
	for n := range 1 << 10 {
		is := func(bit int) bool { return n>>bit&1 != 0 }
		s := idem.Situation{
			Ending: is(0), Unrouted: is(1), TooOld: is(2), Paused: is(3), Blocked: is(4), Full: is(5), Early: is(6),
			HasSlots: is(7), OutOfTurn: is(8), MustAsk: is(9),
		}
		for s.After = range idem.ToDeadLetter + 1 {
			if s.After == idem.ToRelease { // an accepted execution is not released, see Judge
				continue
			}
			for s.Stop = range idem.StopSkip + 1 {
				for s.Stale = range idem.StaleRefused + 1 {
					visit(s, idem.Next(&s))
				}
			}
		}
	}
}

func TestEachPromiseAboutAnAcceptedExecutionHoldsInEverySituation(t *testing.T) {
	in := func(a idem.Action, all ...idem.Action) bool {
		return slices.Contains(all, a)
	}
	written := []idem.Action{idem.ActSettle, idem.ActHold, idem.ActRecordTry, idem.ActBlock, idem.ActDeadLetter}
	for promise, broken := range map[string]func(s idem.Situation, does idem.Action) bool{
		"there is something to do": func(_ idem.Situation, does idem.Action) bool { return does == 0 },
		"what a try showed is written down first, by what has it": func(s idem.Situation, does idem.Action) bool {
			return (s.After != 0 && s.Stop != idem.StopLost) != in(does, written...)
		},
		"it is tried only if nothing is in the way": func(s idem.Situation, does idem.Action) bool {
			return (does == idem.ActCall) != (s == idem.Situation{HasSlots: s.HasSlots})
		},
		"what another process has is left alone": func(s idem.Situation, does idem.Action) bool {
			return (s.Stop == idem.StopLost) != (does == idem.ActLeave)
		},
		"a process that ends begins nothing": func(s idem.Situation, does idem.Action) bool {
			return s.Ending && !in(does, append(written, idem.ActLeave, idem.ActHandOver)...)
		},
		"a cancel ends it, unless the process ends first": func(s idem.Situation, does idem.Action) bool {
			return (s.Stop == idem.StopAbort && s.After == 0 && !s.Ending) != (does == idem.ActAbort)
		},
		"a skip keeps its request": func(s idem.Situation, does idem.Action) bool {
			return (s.Stop == idem.StopSkip && s.After == 0 && !s.Ending) != (does == idem.ActSkip)
		},
		"its age does not count during a pause": func(s idem.Situation, does idem.Action) bool {
			return does == idem.ActExpire && (s.Paused || !s.TooOld)
		},
		"what waits has no slots of limits": func(s idem.Situation, does idem.Action) bool {
			return s.HasSlots && in(does, idem.ActAwaitChange, idem.ActAwaitTime, idem.ActAsk)
		},
		"the service is asked before another try, and before a newer event counts": func(s idem.Situation,
			does idem.Action) bool {
			return s.MustAsk && in(does, idem.ActCall, idem.ActAwaitTurn, idem.ActSupersede, idem.ActRefuse) ||
				does == idem.ActAsk && (!s.MustAsk || s.Early || s.Blocked || s.Paused)
		},
		"nothing is given up for a newer event before its turn": func(s idem.Situation, does idem.Action) bool {
			return in(does, idem.ActSupersede, idem.ActRefuse) && (s.OutOfTurn || s.Paused || s.Blocked || s.Early)
		},
	} {
		eachSituation(func(s idem.Situation, does idem.Action) {
			if broken(s, does) {
				t.Fatalf("%s: broken by action %d in %+v", promise, does, s)
			}
		})
	}
}

func TestWhatADeliveryDoesOnItsWayToTheLock(t *testing.T) {
	all := func(visit func(w idem.Acquisition, storable bool, does idem.Action)) {
		for n := range 1 << 6 {
			is := func(bit int) bool { return n>>bit&1 != 0 }
			for barred := idem.NoLockNotAsked; barred <= idem.NoLockDecided; barred++ {
				w := idem.Acquisition{NoLock: barred, Skips: is(0), Waits: is(1), Follows: is(2), AtOnce: is(3),
					Waited: is(4)}
				visit(w, is(5), idem.Next(&idem.Situation{SenderWaits: true, Acquisition: w, MayPark: is(5)}))
			}
		}
	}
	onlyTime := func(w idem.Acquisition) bool {
		return w.NoLock == idem.NoLockTaken || w.NoLock == idem.NoLockLimited || w.NoLock == idem.NoLockPaused ||
			w.NoLock == idem.NoLockNoRoom
	}
	other := func(w idem.Acquisition) bool { return w.NoLock == idem.NoLockTaken || w.NoLock == idem.NoLockDuplicate }
	for promise, broken := range map[string]func(w idem.Acquisition, storable bool, does idem.Action) bool{
		"the ledger is asked first, unless the event is accepted at once": func(w idem.Acquisition, storable bool,
			does idem.Action) bool {
			return (does == idem.ActClaim) != (w.NoLock == idem.NoLockNotAsked && !(w.AtOnce && storable))
		},
		"a route that skips does so while another execution has the lock or the event": func(w idem.Acquisition, _ bool,
			does idem.Action) bool {
			return (does == idem.ActDrop) != (w.Skips && other(w))
		},
		"it waits once, for what only needs time": func(w idem.Acquisition, _ bool, does idem.Action) bool {
			return (does == idem.ActQueue) != (w.Waits && !w.Waited && onlyTime(w) && !(w.Skips && other(w)))
		},
		"what only needs time is accepted rather than refused": func(w idem.Acquisition, storable bool,
			does idem.Action) bool {
			return does == idem.ActDecline && storable && onlyTime(w)
		},
		"a duplicate is never accepted in its own right": func(w idem.Acquisition, _ bool, does idem.Action) bool {
			return does == idem.ActPark && w.NoLock == idem.NoLockDuplicate
		},
		"a duplicate waits for the answer, if its route says so": func(w idem.Acquisition, _ bool,
			does idem.Action) bool {
			return (does == idem.ActFollow) != (w.Follows && !w.Skips && w.NoLock == idem.NoLockDuplicate)
		},
		"nothing is done about what is decided": func(w idem.Acquisition, _ bool, does idem.Action) bool {
			return w.NoLock == idem.NoLockDecided && does != idem.ActDecline
		},
	} {
		all(func(w idem.Acquisition, storable bool, does idem.Action) {
			if broken(w, storable, does) {
				t.Errorf("%s: broken by action %d on %+v, storable %v", promise, does, w, storable)
			}
		})
	}
}

func TestEachPromiseAboutAnExecutionWhoseSenderWaitsHoldsInEverySituation(t *testing.T) {
	for after := range idem.ToHold + 1 {
		for stale := range idem.StaleRefused + 1 {
			for stop := range idem.StopSkip + 1 {
				for _, storable := range []bool{false, true} {
					s := idem.Situation{SenderWaits: true, After: after, Stale: stale, Stop: stop, MayPark: storable}
					does := idem.Next(&s)
					if (does == idem.ActCall) != (after == 0 && stale == 0) {
						t.Errorf("it is tried once, unless it is stale: action %d in %+v", does, s)
					}
					if (does == idem.ActPark) != (after != 0 && storable) {
						t.Errorf("it is accepted rather than ended, if it can be: action %d in %+v", does, s)
					}
					if does == idem.ActRecordTry || does == idem.ActBlock || does == 0 {
						t.Errorf("its sender waits for the outcome, so it does not rest: action %d in %+v", does, s)
					}
				}
			}
		}
	}
}
