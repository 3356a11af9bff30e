package model

import "slices"

// scenario is who is there, what they want, and how much may go wrong.
type scenario struct {
	name          string
	processCount  int
	lockCount     int
	eventCount    int
	deliveryCount int

	events [maxDeliveries]int // of each delivery
	lockOf [maxEvents]int     // of each event: its workflow's; under strategy none its own
	// none: this delivery comes to a replica whose route says strategy none, while those without it
	// meet others that lock the workflow. Only event A has a lock of its own then.
	none [maxDeliveries]bool
	// heldBack: these deliveries have a lock.limit, not strategy none: a client's lock of the
	// workflow holds them back.
	heldBack bool

	waits, attach, holds, byAPI [maxDeliveries]bool

	latest [maxDeliveries]bool // it waits, and replaces who waits so
	rests  bool                // they wait also where the lock is free

	block        bool // on_unknown: block
	once         bool // idempotency.attempts: 1
	releaseDelay bool
	fails        bool // the upstream may answer 500, which settles nothing
	cuts         bool // its answer may be cut
	unreachable  bool
	challenges   bool // the upstream may ask for credentials
	final        bool // cancels are final
	apart        bool // kept answers are stored apart from their records, for less long

	// What becomes of a delivery whose sender does not wait any longer.
	parkWaits, parkAtOnce, parkRuns [maxDeliveries]bool
	parkAlways                      bool               // who is parked at once is so even where the lock is free
	unrouted                        [maxProcesses]bool // processes without the route: they carry nothing on
	skips                           bool               // cancels of parked executions keep the request
	letters                         bool               // a carrier may give up: its execution is a dead letter

	order [maxEvents]uint8 // where each event stands in the one scope that there is; 0 = its route does not ask
	// what is older than the newest that went through does not run; otherwise it runs all the same
	skipStale bool
	together  bool // places that are taken one after the other are taken in one request, at one revision
	// limits is how many slots there are, as each process has it; 0 = there is no limit.
	limits [maxProcesses]uint8

	budget budget
}

func (sc *scenario) limited() bool { return sc.limits[0] > 0 }

// parks: something may be parked.
func (sc *scenario) parks() bool {
	none := [maxDeliveries]bool{}
	return sc.parkWaits != none || sc.parkAtOnce != none || sc.parkRuns != none || sc.budget.again > 0
}

func (sc *scenario) alike(a, b int) bool {
	return sc.events[a] == sc.events[b] && sc.waits[a] == sc.waits[b] && sc.attach[a] == sc.attach[b] &&
		sc.holds[a] == sc.holds[b] &&
		sc.byAPI[a] == sc.byAPI[b] && sc.latest[a] == sc.latest[b] && sc.none[a] == sc.none[b] &&
		sc.parkWaits[a] == sc.parkWaits[b] && sc.parkAtOnce[a] == sc.parkAtOnce[b] && sc.parkRuns[a] == sc.parkRuns[b]
}

func bounded(name string, events []int, b budget, change func(sc *scenario)) scenario {
	sc := scenario{name: name, processCount: 2, lockCount: 1, deliveryCount: len(events), budget: b}
	copy(sc.events[:], events)
	for _, e := range events {
		sc.eventCount = max(sc.eventCount, e+1)
	}
	change(&sc)
	return sc
}

func first(flags *[maxDeliveries]bool)  { flags[0] = true }
func second(flags *[maxDeliveries]bool) { flags[1] = true }
func all(flags *[maxDeliveries]bool)    { *flags = [maxDeliveries]bool{true, true, true} }

// scenarios are bounded so that each is explored to its end.
func scenarios() []scenario {
	others := []int{0, 1}
	return slices.Concat(refusingScenarios(), provenScenarios(), waitingScenarios(), holdingScenarios(),
		strategyScenarios(), parkedScenarios(), againScenarios(), pauseScenarios(), ordered(others), limitScenarios(),
		latestScenarios(), togetherScenarios(others))
}

// refusingScenarios are those in which a delivery that meets a lock is refused.
func refusingScenarios() []scenario {
	copies, others := []int{0, 0}, []int{0, 1}
	return []scenario{
		bounded("fail fast, copies, retry", copies, budget{ambiguous: 2, crash: 1, expire: 1},
			func(sc *scenario) { sc.cuts = true }),
		bounded("fail fast, copies, block", copies, budget{ambiguous: 2, crash: 1, expire: 1},
			func(sc *scenario) { sc.cuts, sc.block = true, true }),
		bounded("fail fast, copies, one attempt, forget", copies, budget{ambiguous: 1, crash: 1, expire: 1, forget: 1},
			func(sc *scenario) { sc.cuts, sc.fails, sc.once = true, true, true }),
		bounded("fail fast, copy and other", []int{0, 0, 1}, budget{ambiguous: 1, crash: 1},
			func(sc *scenario) { sc.cuts = true }),
		bounded("fail fast, other, session given up", others, budget{ambiguous: 1, expire: 1, unheard: 1},
			func(sc *scenario) { sc.cuts, sc.unreachable = true, true }),
		bounded("fail fast, three copies, forget", []int{0, 0, 0}, budget{ambiguous: 1, expire: 1, forget: 1},
			func(sc *scenario) { sc.cuts, sc.block = true, true }),
		bounded("unreachable, cancel", copies, budget{ambiguous: 2, crash: 1, expire: 1, cancel: 1},
			func(sc *scenario) { sc.unreachable = true }),
		bounded("challenge", copies, budget{ambiguous: 1, crash: 1, expire: 1, cancel: 1},
			func(sc *scenario) { sc.challenges = true; second(&sc.attach) }),
		bounded("release delay, force", others, budget{ambiguous: 1, crash: 1, expire: 1, force: 1},
			func(sc *scenario) { sc.releaseDelay, sc.cuts = true, true }),
		bounded("cancel, guard", copies, budget{ambiguous: 2, expire: 1, cancel: 1, guard: 1},
			func(sc *scenario) { sc.cuts = true }),
		bounded("adopt twice", others, budget{ambiguous: 1, expire: 2}, func(sc *scenario) { sc.releaseDelay = true }),
		bounded("answers apart", copies, budget{ambiguous: 2, crash: 1, expire: 1, answer: 1},
			func(sc *scenario) { sc.apart, sc.cuts = true, true }),
		bounded("answers apart, wait, forget", []int{0, 0, 1}, budget{ambiguous: 1, forget: 1, answer: 2},
			func(sc *scenario) { sc.apart = true; all(&sc.waits) }),
		bounded("known failure", copies, budget{ambiguous: 2, expire: 1}, func(sc *scenario) { sc.fails = true }),
		bounded("known failure, forget", copies, budget{ambiguous: 1, expire: 1, forget: 1},
			func(sc *scenario) { sc.fails = true }),
		bounded("max duration", others, budget{ambiguous: 1, crash: 1, expire: 1, cancel: 1, age: 1},
			func(sc *scenario) { sc.fails, sc.releaseDelay = true, true }),
		bounded("final cancel", copies, budget{ambiguous: 1, crash: 1, expire: 1, cancel: 1, force: 1},
			func(sc *scenario) { sc.fails, sc.final = true, true }),
		bounded("final cancel, forget", copies, budget{ambiguous: 1, expire: 1, cancel: 1, forget: 1},
			func(sc *scenario) { sc.final, sc.unreachable = true, true }),
		bounded("final cancel, waiting", []int{0, 1, 1}, budget{ambiguous: 1, cancel: 1},
			func(sc *scenario) { sc.final, sc.fails, sc.waits = true, true, [maxDeliveries]bool{true, true} }),
	}
}

// provenScenarios are those in which an unknown outcome becomes known: the service is asked, or the
// file of a dead process says it.
func provenScenarios() []scenario {
	copies, others := []int{0, 0}, []int{0, 1}
	return []scenario{
		bounded("asked", copies, budget{ambiguous: 1, crash: 1, expire: 1, ask: 1},
			func(sc *scenario) { sc.cuts, sc.block, sc.releaseDelay = true, true, true }),
		bounded("asked, retry", copies, budget{ambiguous: 1, expire: 1, ask: 1}, func(sc *scenario) { sc.cuts = true }),
		bounded("asked, order", others, budget{ambiguous: 1, ask: 1},
			func(sc *scenario) { newestFirst(sc); sc.cuts, sc.block, sc.releaseDelay = true, true, true }),
		bounded("asked, wait", []int{0, 0, 1}, budget{ambiguous: 1, ask: 1},
			func(sc *scenario) { sc.cuts = true; all(&sc.waits) }),
		bounded("asked, strategy changes", copies, budget{ambiguous: 1, expire: 1, ask: 1},
			func(sc *scenario) { strategyChanges(sc); sc.cuts = true }),
		bounded("proven, retry", copies, budget{ambiguous: 2, crash: 1, expire: 1, proof: 1},
			func(sc *scenario) { sc.cuts, sc.fails = true, true }),
		bounded("proven, block, cancel", copies, budget{ambiguous: 1, crash: 1, expire: 1, cancel: 1, proof: 1},
			func(sc *scenario) { sc.block, sc.releaseDelay = true, true }),
		bounded("proven, restart, two files", copies, budget{crash: 2, restart: 1, proof: 2},
			func(sc *scenario) { sc.fails = true }),
		bounded("proven, wait", []int{0, 0, 1}, budget{ambiguous: 1, crash: 1, proof: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("proven, order", others, budget{ambiguous: 1, crash: 1, proof: 1},
			func(sc *scenario) { newestFirst(sc); sc.releaseDelay = true }),
		bounded("proven, strategy changes", copies, budget{ambiguous: 1, crash: 1, expire: 1, proof: 1},
			func(sc *scenario) { strategyChanges(sc) }),
		bounded("proven, woken, retry", copies, budget{ambiguous: 1, expire: 1, proof: 1},
			func(sc *scenario) { sc.cuts, sc.fails = true, true }),
		bounded("proven, woken, block, cancel", copies, budget{ambiguous: 1, expire: 1, cancel: 1, answer: 1, proof: 1},
			func(sc *scenario) { sc.block, sc.releaseDelay, sc.apart = true, true, true }),
		bounded("proven, woken, max_duration", copies, budget{ambiguous: 1, expire: 1, age: 1, proof: 1},
			func(sc *scenario) { sc.releaseDelay = true }),
		bounded("proven, woken, strategy changes", copies, budget{expire: 1, proof: 1},
			func(sc *scenario) { strategyChanges(sc) }),
	}
}

// waitingScenarios are those in which a delivery waits for the lock, or for the answer of its
// event.
func waitingScenarios() []scenario {
	copies, others := []int{0, 0}, []int{0, 1}
	return []scenario{
		bounded("wait, copies behind another", []int{0, 1, 1}, budget{ambiguous: 1, crash: 1, hangUp: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("wait, three events", []int{0, 1, 2}, budget{ambiguous: 1, hangUp: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("wait, session lost", others, budget{ambiguous: 1, expire: 1, unheard: 1, hangUp: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("wait, copies, session lost", []int{0, 1, 1}, budget{ambiguous: 1, expire: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("wait, cancel, session lost", others, budget{ambiguous: 1, expire: 1, cancel: 1, hangUp: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("wait, cancel", others, budget{ambiguous: 2, crash: 1, cancel: 1, hangUp: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("wait, a copy waits, retry", []int{0, 0, 1}, budget{ambiguous: 1, cancel: 1},
			func(sc *scenario) { second(&sc.waits) }),
		bounded("wait, a copy waits, block", []int{0, 0, 1}, budget{ambiguous: 1, expire: 1},
			func(sc *scenario) { sc.block = true; second(&sc.waits) }),
		bounded("wait, release delay", others, budget{ambiguous: 1, crash: 1, expire: 1},
			func(sc *scenario) { sc.cuts, sc.releaseDelay = true, true; all(&sc.waits) }),
		bounded("adopt, session given up", others, budget{ambiguous: 1, expire: 1, unheard: 1}, func(sc *scenario) {}),
		bounded("attach", copies, budget{ambiguous: 1, crash: 1, expire: 1, cancel: 1},
			func(sc *scenario) { sc.fails, sc.unreachable = true, true; second(&sc.attach) }),
		bounded("attach, three copies, forget", []int{0, 0, 0}, budget{crash: 1, expire: 1, forget: 1},
			func(sc *scenario) { sc.fails = true; sc.attach = [maxDeliveries]bool{false, true, false} }),
		bounded("attach to a waiting one", []int{0, 1, 1}, budget{ambiguous: 1, crash: 1, hangUp: 1},
			func(sc *scenario) { sc.waits = [maxDeliveries]bool{true, true}; sc.attach[2] = true }),
	}
}

// holdingScenarios are those in which a lock outlives the answer, or is a client's.
func holdingScenarios() []scenario {
	copies, others := []int{0, 0}, []int{0, 1}
	return []scenario{
		bounded("hold, retry", copies, budget{ambiguous: 1, crash: 1, expire: 1, beat: 2},
			func(sc *scenario) { first(&sc.holds) }),
		bounded("hold, cancel, force", copies, budget{ambiguous: 1, crash: 1, expire: 1, beat: 1, cancel: 1, force: 1},
			func(sc *scenario) { sc.block = true; first(&sc.holds) }),
		bounded("hold, release delay, guard", others, budget{ambiguous: 1, crash: 1, beat: 1, guard: 1},
			func(sc *scenario) { sc.releaseDelay, sc.fails = true, true; first(&sc.holds) }),
		bounded("hold, wait", others, budget{ambiguous: 1, crash: 1, expire: 1, beat: 1},
			func(sc *scenario) { first(&sc.holds); second(&sc.waits) }),
		bounded("hold, max duration", copies, budget{ambiguous: 1, expire: 1, beat: 1, age: 1, cancel: 1},
			func(sc *scenario) { first(&sc.holds) }),
		bounded("lock API", others, budget{ambiguous: 1, crash: 1, expire: 1, beat: 2, cancel: 1},
			func(sc *scenario) { first(&sc.byAPI) }),
		bounded("lock API, two clients, wait", []int{0, 1, 2}, budget{ambiguous: 1}, func(sc *scenario) {
			sc.byAPI = [maxDeliveries]bool{true, false, true}
			second(&sc.waits)
		}),
		bounded("lock API, limit of a workflow", []int{0, 0, 1}, budget{ambiguous: 1, crash: 1, beat: 1},
			clientBesideLimit),
		bounded("lock API, limit of a workflow, wait", []int{0, 0, 1}, budget{ambiguous: 1, cancel: 1},
			func(sc *scenario) { clientBesideLimit(sc); second(&sc.waits) }),
		bounded("lock API, limit of a workflow, park", []int{0, 0, 1}, budget{ambiguous: 1}, func(sc *scenario) {
			clientBesideLimit(sc)
			second(&sc.waits)
			second(&sc.parkAtOnce)
		}),
	}
}

// strategyScenarios are those without one lock for all: the route says strategy none, or did
// before.
func strategyScenarios() []scenario {
	copies := []int{0, 0}
	return []scenario{
		bounded("strategy none", []int{0, 0, 1}, budget{ambiguous: 1, crash: 1}, perEvent),
		bounded("two workflows", []int{0, 0, 1}, budget{ambiguous: 1},
			func(sc *scenario) { perEvent(sc); sc.cuts = true }),
		bounded("strategy changes", copies, budget{ambiguous: 2, crash: 1, expire: 1},
			func(sc *scenario) { strategyChanges(sc); sc.cuts = true }),
		bounded("strategy changes, copy and other", []int{0, 0, 1}, budget{ambiguous: 1, crash: 1}, strategyChanges),
		bounded("strategy changes, wait", []int{0, 0, 1}, budget{ambiguous: 1},
			func(sc *scenario) { strategyChanges(sc); first(&sc.waits) }),
		bounded("strategy changes, hold, attach", copies, budget{ambiguous: 1, expire: 1, beat: 1, force: 1},
			func(sc *scenario) { strategyChanges(sc); all(&sc.holds); first(&sc.attach) }),
		bounded("strategy changes, release delay", copies, budget{ambiguous: 1, crash: 1, cancel: 1},
			func(sc *scenario) { strategyChanges(sc); sc.cuts, sc.releaseDelay = true, true }),
		bounded("strategy changes, wait, release delay", []int{0, 0, 1}, budget{ambiguous: 1},
			func(sc *scenario) { strategyChanges(sc); sc.cuts, sc.releaseDelay = true, true; first(&sc.waits) }),
	}
}

// parkedScenarios are those in which senders do not wait.
func parkedScenarios() []scenario {
	copies, others := []int{0, 0}, []int{0, 1}
	return []scenario{
		bounded("park while waiting", others, budget{ambiguous: 1, crash: 1, expire: 1},
			func(sc *scenario) { all(&sc.waits); second(&sc.parkWaits) }),
		bounded("park while waiting, cancel", others, budget{ambiguous: 1, expire: 1, cancel: 1},
			func(sc *scenario) { all(&sc.waits); second(&sc.parkWaits) }),
		bounded("park at once", others, budget{ambiguous: 1, crash: 1},
			func(sc *scenario) { all(&sc.waits); all(&sc.parkAtOnce) }),
		bounded("park at once, copies, forget", copies, budget{ambiguous: 1, expire: 1, forget: 1},
			func(sc *scenario) { sc.fails = true; all(&sc.waits); first(&sc.parkAtOnce) }),
		bounded("park at once, a copy runs", []int{0, 0, 1}, budget{ambiguous: 1},
			func(sc *scenario) { second(&sc.waits); second(&sc.parkAtOnce) }),
		bounded("park at once, copies behind another", []int{0, 1, 1}, budget{ambiguous: 1},
			func(sc *scenario) { all(&sc.waits); all(&sc.parkAtOnce) }),
		bounded("park always, strategy changes", []int{0, 0, 1}, budget{ambiguous: 1}, func(sc *scenario) {
			strategyChanges(sc)
			sc.parkAlways, sc.parkAtOnce = true, [maxDeliveries]bool{true, true}
		}),
		bounded("park always, strategy changes, copies", copies, budget{ambiguous: 1, crash: 1, cancel: 1},
			func(sc *scenario) {
				strategyChanges(sc)
				sc.parkAlways, sc.fails = true, true
				second(&sc.parkAtOnce)
				first(&sc.waits)
			}),
		bounded("park while running", copies, budget{ambiguous: 1, crash: 1, expire: 1},
			func(sc *scenario) { sc.cuts = true; first(&sc.parkRuns) }),
		bounded("park while running, other", others, budget{expire: 1, crash: 1},
			func(sc *scenario) { sc.fails = true; all(&sc.parkRuns); second(&sc.waits) }),
		bounded("carry, cancel", []int{0}, budget{ambiguous: 1, crash: 1, expire: 2, cancel: 1},
			func(sc *scenario) { sc.cuts = true; first(&sc.parkRuns) }),
		bounded("proven, carry", others, budget{ambiguous: 1, crash: 1, expire: 1, proof: 1},
			func(sc *scenario) { second(&sc.waits); first(&sc.parkRuns) }),
		bounded("carry, block, run", []int{0}, budget{ambiguous: 1, crash: 1, expire: 1, run: 1, cancel: 1},
			func(sc *scenario) { sc.cuts, sc.block = true, true; first(&sc.parkRuns) }),
		bounded("carry, too old, block, run", []int{0}, budget{ambiguous: 1, expire: 1, old: 1, run: 1, cancel: 1},
			func(sc *scenario) { sc.cuts, sc.block = true, true; first(&sc.parkRuns) }),
		bounded("carry, force", others, budget{ambiguous: 1, expire: 1, force: 1},
			func(sc *scenario) { all(&sc.waits); first(&sc.parkRuns) }),
		bounded("carry, given to others, no route", []int{0}, budget{ambiguous: 1, expire: 1, down: 2},
			func(sc *scenario) { sc.fails, sc.unrouted[0] = true, true; first(&sc.parkRuns) }),
		bounded("dead letter, rerun, forget", copies, budget{ambiguous: 1, run: 1, forget: 1},
			func(sc *scenario) { sc.letters, sc.fails = true, true; first(&sc.parkRuns) }),
		bounded("dead letter, cancel", []int{0}, budget{ambiguous: 1, cancel: 1},
			func(sc *scenario) { sc.letters, sc.fails = true, true; first(&sc.parkRuns) }),
		bounded("rerun, a copy waits", []int{0, 0, 1}, budget{ambiguous: 1, run: 1},
			func(sc *scenario) { sc.letters, sc.fails = true, true; first(&sc.parkRuns); second(&sc.waits) }),
		bounded("rerun, strategy changes", copies, budget{ambiguous: 1, run: 1},
			func(sc *scenario) { strategyChanges(sc); sc.letters, sc.fails = true, true; first(&sc.parkRuns) }),
		bounded("skip", others, budget{ambiguous: 1, crash: 1, cancel: 1},
			func(sc *scenario) { sc.skips = true; all(&sc.waits); all(&sc.parkAtOnce) }),
		bounded("carry, release delay", others, budget{ambiguous: 1, expire: 1},
			func(sc *scenario) { sc.cuts, sc.letters, sc.releaseDelay = true, true, true; first(&sc.parkRuns) }),
		bounded("carry, hold", []int{0}, budget{ambiguous: 1, crash: 1, expire: 1, beat: 1},
			func(sc *scenario) { first(&sc.parkRuns); first(&sc.holds) }),
	}
}

// againScenarios are those in which a person lets a settled event run again.
func againScenarios() []scenario {
	copies, others := []int{0, 0}, []int{0, 1}
	return []scenario{
		bounded("again, a copy", copies, budget{ambiguous: 1, crash: 1, expire: 1, again: 1},
			func(sc *scenario) { sc.cuts = true }),
		bounded("again, cancel", copies, budget{ambiguous: 1, expire: 1, cancel: 1, again: 1}, func(sc *scenario) {}),
		bounded("again, final cancel", copies, budget{ambiguous: 1, cancel: 1, again: 1},
			func(sc *scenario) { sc.final = true }),
		bounded("again, force", copies, budget{ambiguous: 1, expire: 1, force: 1, again: 1},
			func(sc *scenario) { sc.cuts, sc.block = true, true }),
		bounded("again, twice", copies, budget{ambiguous: 2, again: 2}, func(sc *scenario) { sc.fails = true }),
		bounded("again, forget", copies, budget{ambiguous: 1, forget: 1, again: 1},
			func(sc *scenario) { sc.fails = true }),
		bounded("again, a copy waits, forget", []int{0, 0, 1}, budget{ambiguous: 1, forget: 1, again: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("again, dead letter, rerun", copies, budget{ambiguous: 1, run: 1, again: 1},
			func(sc *scenario) { sc.letters, sc.fails, sc.once = true, true, true }),
		bounded("again, strategy changes", copies, budget{ambiguous: 1, forget: 1, again: 1}, strategyChanges),
		bounded("again, order, skip", others, budget{ambiguous: 1, again: 1},
			func(sc *scenario) { newestFirst(sc); sc.skipStale = true }),
	}
}

// ordered are those in which event A is newer than event B.
func ordered(others []int) []scenario {
	return []scenario{
		bounded("order", others, budget{ambiguous: 1, crash: 1, expire: 1},
			func(sc *scenario) { newestFirst(sc); sc.fails, sc.cuts = true, true }),
		bounded("order, skip, wait", others, budget{ambiguous: 1, crash: 1, expire: 1},
			func(sc *scenario) { newestFirst(sc); sc.skipStale = true; all(&sc.waits) }),
		bounded("order, skip, force, cancel", others, budget{ambiguous: 1, expire: 1, force: 1, cancel: 1},
			func(sc *scenario) { newestFirst(sc); sc.skipStale = true }),
		bounded("order, hold", others, budget{ambiguous: 1, expire: 1, beat: 1},
			func(sc *scenario) { newestFirst(sc); sc.skipStale = true; all(&sc.holds) }),
		bounded("order, forget", others, budget{ambiguous: 1, expire: 1, forget: 1},
			func(sc *scenario) { newestFirst(sc); sc.skipStale = true }),
		bounded("order, two locks", others, budget{ambiguous: 1, crash: 1, expire: 1},
			func(sc *scenario) { newestFirst(sc); perEvent(sc) }),
		bounded("order, skip, parked", others, budget{ambiguous: 1, crash: 1}, func(sc *scenario) {
			newestFirst(sc)
			sc.skipStale = true
			all(&sc.waits)
			second(&sc.parkAtOnce)
		}),
		bounded("order, skip, carried", others, budget{ambiguous: 1, expire: 1},
			func(sc *scenario) { newestFirst(sc); sc.skipStale = true; second(&sc.parkRuns) }),
	}
}

// limitScenarios are those with a limit over all workflows.
func limitScenarios() []scenario {
	copies, others := []int{0, 0}, []int{0, 1}
	return []scenario{
		bounded("limit", []int{0, 1, 1}, budget{ambiguous: 1, crash: 1},
			func(sc *scenario) { limited(sc, 1, 1); sc.cuts = true }),
		bounded("limit, session lost", others, budget{ambiguous: 1, expire: 1, unheard: 1},
			func(sc *scenario) { limited(sc, 1, 1); sc.unreachable = true }),
		bounded("limit, wait", others, budget{ambiguous: 1, crash: 1, hangUp: 1, cancel: 1},
			func(sc *scenario) { limited(sc, 1, 1); all(&sc.waits) }),
		bounded("limit, wait, session lost", others, budget{ambiguous: 1, expire: 1},
			func(sc *scenario) { limited(sc, 1, 1); all(&sc.waits) }),
		bounded("limit, some wait, three workflows", []int{0, 1, 2}, budget{crash: 1, hangUp: 1},
			func(sc *scenario) { limited(sc, 1, 1); second(&sc.waits) }),
		bounded("limit, wait behind another", []int{0, 1, 2}, budget{ambiguous: 1, hangUp: 1}, func(sc *scenario) {
			limited(sc, 1, 1)
			sc.lockOf = [maxEvents]int{0, 0, 1}
			second(&sc.waits)
		}),
		bounded("limits that differ", []int{0, 1, 2}, budget{ambiguous: 1}, func(sc *scenario) { limited(sc, 1, 2) }),
		bounded("limit, release delay, force", others, budget{ambiguous: 1, crash: 1, force: 1},
			func(sc *scenario) { limited(sc, 1, 1); sc.cuts, sc.releaseDelay = true, true }),
		bounded("limit, hold", others, budget{ambiguous: 1, crash: 1, beat: 1},
			func(sc *scenario) { limited(sc, 1, 1); first(&sc.holds); second(&sc.waits) }),
		bounded("limit, park", others, budget{ambiguous: 1, crash: 1, cancel: 1},
			func(sc *scenario) { limited(sc, 1, 1); all(&sc.waits); all(&sc.parkAtOnce) }),
		bounded("limit, park while waiting", others, budget{crash: 1, expire: 1},
			func(sc *scenario) { limited(sc, 1, 1); all(&sc.waits); second(&sc.parkWaits) }),
		bounded("limit, carry", others, budget{ambiguous: 1, expire: 1},
			func(sc *scenario) { limited(sc, 1, 1); sc.fails = true; first(&sc.parkRuns) }),
		bounded("limit, carry, block, run", others, budget{crash: 1, expire: 1, run: 1}, func(sc *scenario) {
			limited(sc, 1, 1)
			sc.cuts, sc.block = true, true
			first(&sc.parkRuns)
		}),
		bounded("limit of a workflow, wait", copies, budget{ambiguous: 1, crash: 1, hangUp: 1}, func(sc *scenario) {
			strategyChanges(sc)
			limited(sc, 1, 1)
			sc.lockOf = [maxEvents]int{}
			second(&sc.waits)
		}),
	}
}

// latestScenarios are those in which a newer one replaces who waits. rests: all of them wait, so
// two deliveries are enough.
func latestScenarios() []scenario {
	copies, others := []int{0, 1, 0}, []int{0, 1}
	return []scenario{
		bounded("latest", []int{0, 1, 2}, budget{hangUp: 1}, latest),
		bounded("latest, lost answer", []int{0, 1, 2}, budget{ambiguous: 1}, latest),
		bounded("latest, quiet", others, budget{ambiguous: 1, crash: 1, expire: 1, hangUp: 1},
			func(sc *scenario) { latest(sc); sc.rests = true }),
		bounded("latest, quiet, cancel", others, budget{ambiguous: 1, crash: 1, cancel: 1},
			func(sc *scenario) { latest(sc); sc.rests = true }),
		bounded("latest, quiet, copies", copies, budget{ambiguous: 1, hangUp: 1},
			func(sc *scenario) { latest(sc); sc.rests = true }),
		bounded("latest, quiet, copies, forget", copies, budget{forget: 1},
			func(sc *scenario) { latest(sc); sc.rests, sc.fails = true, true }),
		bounded("latest, quiet, three events", []int{0, 1, 2}, budget{crash: 1},
			func(sc *scenario) { latest(sc); sc.rests = true }),
		bounded("latest, park at once", others, budget{ambiguous: 1, cancel: 1},
			func(sc *scenario) { latest(sc); sc.rests = true; all(&sc.parkAtOnce) }),
		bounded("latest, park at once, three events", []int{0, 1, 2}, budget{ambiguous: 1},
			func(sc *scenario) { latest(sc); sc.parkAtOnce = [maxDeliveries]bool{false, true, true} }),
		bounded("latest, park while waiting", others, budget{ambiguous: 1},
			func(sc *scenario) { latest(sc); sc.rests = true; first(&sc.parkWaits) }),
		bounded("latest, pause", others, budget{ambiguous: 1, pause: 1, resume: 1}, latest),
		bounded("latest, limit", []int{0, 1, 2}, budget{hangUp: 1},
			func(sc *scenario) { latest(sc); limited(sc, 1, 1); sc.lockOf = [maxEvents]int{0, 1, 1} }),
		bounded("latest beside wait", []int{0, 1, 2}, budget{hangUp: 1},
			func(sc *scenario) { latest(sc); sc.rests, sc.latest[1] = true, false }),
	}
}

// latest: a newer one replaces who waits.
func latest(sc *scenario) { all(&sc.waits); all(&sc.latest) }

// limited gives each event a workflow of its own, and all of them one limit.
func limited(sc *scenario, limits ...uint8) {
	sc.lockCount, sc.lockOf = 3, [maxEvents]int{0, 1, 2}
	copy(sc.limits[:], limits)
}

// strategyChanges: some replicas have gone over to strategy none, others have not.
func strategyChanges(sc *scenario) { second(&sc.none); sc.lockCount = 2 }

// clientBesideLimit: a client takes the lock of a workflow, and event A comes to a replica whose
// route has a lock.limit above one, and to one whose route has none.
func clientBesideLimit(sc *scenario) {
	strategyChanges(sc)
	sc.heldBack, sc.byAPI[2] = true, true
}

// newestFirst: event A is newer than event B.
func newestFirst(sc *scenario) { sc.order = [maxEvents]uint8{2, 1} }

// perEvent gives each event a lock of its own, as strategy none does, and as different workflows
// have.
func perEvent(sc *scenario) { sc.lockCount, sc.lockOf = 2, [maxEvents]int{0, 1} }

// inCompany are for transactions in one request: two workflows, and everything that people and
// holders may do.
func inCompany() []scenario {
	two := func(name string, b budget, change func(sc *scenario)) scenario {
		return bounded(name, []int{0, 0, 1}, b, func(sc *scenario) { perEvent(sc); change(sc) })
	}
	return []scenario{
		two("fail fast", budget{expire: 1, cancel: 1, guard: 1, force: 1, forget: 1},
			func(sc *scenario) { sc.cuts, sc.releaseDelay = true, true }),
		two("wait", budget{ambiguous: 1, expire: 1, cancel: 1, hangUp: 1}, func(sc *scenario) { all(&sc.waits) }),
		two("hold", budget{expire: 1, beat: 2, age: 1, cancel: 1, guard: 1}, func(sc *scenario) { all(&sc.holds) }),
		two("lock API", budget{ambiguous: 1, beat: 2}, func(sc *scenario) { all(&sc.byAPI) }),
		two("park", budget{ambiguous: 1, expire: 1, cancel: 1, run: 1}, func(sc *scenario) {
			sc.letters, sc.fails = true, true
			all(&sc.waits)
			second(&sc.parkAtOnce)
			first(&sc.parkRuns)
		}),
		two("limit", budget{ambiguous: 1, expire: 1, cancel: 1, force: 1},
			func(sc *scenario) { limited(sc, 1, 2); all(&sc.waits) }),
		two("limit, carry", budget{expire: 1, force: 1},
			func(sc *scenario) { limited(sc, 1, 2); sc.fails = true; first(&sc.parkRuns) }),
		two("latest", budget{ambiguous: 1, expire: 1}, func(sc *scenario) {
			latest(sc)
			sc.lockOf = [maxEvents]int{}
			sc.events = [maxDeliveries]int{0, 1, 1}
			sc.rests = true
		}),
		bounded("wait in one workflow", []int{0, 1, 1}, budget{expire: 1, cancel: 1, hangUp: 1},
			func(sc *scenario) { all(&sc.waits) }),
		bounded("strategy changes", []int{0, 0, 1}, budget{expire: 1, cancel: 1, forget: 1, force: 1},
			func(sc *scenario) { strategyChanges(sc); sc.cuts, sc.releaseDelay = true, true; first(&sc.waits) }),
		bounded("clients and deliveries in one workflow", []int{0, 1, 2}, budget{beat: 1},
			func(sc *scenario) { first(&sc.byAPI); second(&sc.waits) }),
	}
}

// larger bounds, for random walks.
func (sc *scenario) larger() {
	sc.processCount = maxProcesses
	b := &sc.budget
	b.ambiguous, b.crash, b.expire, b.unheard, b.restart = 3, 2, 2, 1, 1
	for _, p := range []*uint8{&b.cancel, &b.hangUp, &b.guard, &b.forget, &b.force, &b.age} {
		*p *= 2
	}
}

// togetherScenarios are those in which places are taken in one request.
func togetherScenarios(others []int) []scenario {
	return []scenario{
		bounded("wait, three events, together", []int{0, 1, 2}, budget{ambiguous: 1, hangUp: 1},
			func(sc *scenario) { sc.together = true; all(&sc.waits) }),
		bounded("wait, together, session lost", others, budget{ambiguous: 1, expire: 1, cancel: 1},
			func(sc *scenario) { sc.together = true; all(&sc.waits) }),
	}
}
