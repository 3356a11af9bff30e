package etcdlock

import "hooklock/etcdlock/protocol"

func kept(s *scene) { s.put(s.k.R); s.put(s.k.P); s.put(s.k.G) }

func parkedRows() []row {
	all := protocol.Parking{Request: value, Index: value, Age: value}
	with := func(k protocol.Keys, more ...string) []string { return append([]string{k.R, k.P, k.G}, more...) }
	withL := func(k protocol.Keys) []string { return with(k, k.L) }
	withQ := func(k protocol.Keys) []string { return with(k, k.Q) }
	l := func(k protocol.Keys) []string { return []string{k.L} }
	i := func(k protocol.Keys) []string { return []string{k.I} }
	letter := func(k protocol.Keys) []string { return []string{k.I, k.R, k.P} }
	noLetter := func(k protocol.Keys) []string { return []string{k.L, k.G} }
	ownLock := map[string]func(*scene){"L.create": otherToken, "L.mod=l": touchLock}
	dead := map[string]func(*scene){"L.mod=l": touchLock, "alive key absent": func(s *scene) { s.put(s.k.A) }}
	enqueue := map[string]func(*scene){"E": moveEpoch, "L.mod=l": touchLock, "O.mod=o": takeOther, "Q absent": func(s *scene) { s.put(s.k.Q) }, "I.mod=prev": writeRecord}
	rerun := map[string]func(*scene){"L.mod=l": touchLock, "O.mod=o": takeOther, "Q absent": func(s *scene) { s.put(s.k.Q) }, "I.mod=prev": func(s *scene) { s.del(s.k.I) }}
	old := func(k protocol.Keys) protocol.Keys { k.R, k.P = k.R+"old", k.P+"old"; return k }
	return []row{
		{"enqueue what is parked", func(s *scene) { session0(s); locked(s); elsewhere(s) }, func(s *scene) protocol.Op { return protocol.EnqueueParked(s.k, s.at, value, all) }, withQ, nil, enqueue},
		{"park what waits", queued, func(s *scene) protocol.Op { return protocol.ParkWaiting(s.k, s.at, value, all) }, withQ, nil,
			map[string]func(*scene){"Q.create=q": placeOfAnother}},
		{"park what runs", locked, func(s *scene) protocol.Op { return protocol.ParkRunning(s.k, s.at, value, all) }, withL, nil, ownLock},
		{"attempt", func(s *scene) { locked(s); s.put(s.k.A) }, func(s *scene) protocol.Op { return protocol.Attempt(s.k, s.at, value) }, l, nil,
			map[string]func(*scene){"L.create": otherToken, "L.mod=l": touchLock, "alive key present": func(s *scene) { s.del(s.k.A) }}},
		{"rest", locked, func(s *scene) protocol.Op { return protocol.Rest(s.k, s.at, value, nil) }, l, func(k protocol.Keys) []string { return []string{k.P} }, ownLock},
		{"rest and say so", locked, func(s *scene) protocol.Op { return protocol.Rest(s.k, s.at, value, &value) }, func(k protocol.Keys) []string { return []string{k.L, k.P} }, nil, ownLock},
		{"carry", func(s *scene) { session0(s); locked(s) }, func(s *scene) protocol.Op { return protocol.Carry(s.k, s.at, value) }, l, nil,
			map[string]func(*scene){"E": moveEpoch, "L.mod=l": touchLock, "alive key absent": func(s *scene) { s.put(s.k.A) }}},
		{"settle what was parked", func(s *scene) { locked(s); kept(s) }, func(s *scene) protocol.Op { return protocol.SettleParked(s.k, s.at, value, nil, nil, nil) }, i, withL, ownLock},
		{"settle as a dead letter", func(s *scene) { locked(s); kept(s) }, func(s *scene) protocol.Op { return protocol.SettleParked(s.k, s.at, value, nil, &value, nil) }, letter, noLetter, ownLock},
		{"settle what is too old", func(s *scene) { locked(s); kept(s); s.del(s.k.G) }, func(s *scene) protocol.Op { return protocol.SettleTooOld(s.k, s.at, value, nil, &value) }, letter, func(k protocol.Keys) []string { return []string{k.L} },
			map[string]func(*scene){"L.create": otherToken, "L.mod=l": touchLock, "G absent": func(s *scene) { s.put(s.k.G) }}},
		{"end what nobody carries", func(s *scene) { locked(s); kept(s) }, func(s *scene) protocol.Op { return protocol.EndUncarried(s.k, s.at, value, nil, nil) }, i, withL, dead},
		{"end a parked place", func(s *scene) { queued(s); s.put(s.k.Q); kept(s) }, func(s *scene) protocol.Op { return protocol.EndParkedPlace(s.k, s.at, value, nil) }, i, withQ,
			map[string]func(*scene){"Q.create=q": placeOfAnother, "I.mod=prev": writeRecord}},
		{"force release what is parked", func(s *scene) { locked(s); kept(s) }, func(s *scene) protocol.Op { return protocol.ForceReleaseParked(s.k, s.at, value, value, value) }, letter, noLetter,
			map[string]func(*scene){"L.mod=l": touchLock}},
		{"run now", locked, func(s *scene) protocol.Op { return protocol.RunNow(s.k, s.at, value, value, value) }, func(k protocol.Keys) []string { return []string{k.L, k.P, k.G} }, nil,
			map[string]func(*scene){"L.mod=l": touchLock}},
		{"rerun", func(s *scene) {
			locked(s)
			s.at.Prev = s.put(s.k.I)
			s.put(old(s.k).R)
			s.put(old(s.k).P)
		}, func(s *scene) protocol.Op { return protocol.Rerun(s.k, s.at, value, all, old(s.k)) }, withQ, func(k protocol.Keys) []string { return []string{old(k).R, old(k).P} }, rerun},
		{"sweep a letter", kept, func(s *scene) protocol.Op { return protocol.SweepLetter(s.k, s.at) }, nil, func(k protocol.Keys) []string { return []string{k.R, k.P} },
			map[string]func(*scene){"I.mod=prev": writeRecord}},
		{"cancel a waiting one, which is parked", func(s *scene) { queued(s); s.put(s.k.Q); s.at.Q = s.at.Q + 1 }, func(s *scene) protocol.Op { return protocol.CancelWaiting(s.k, s.at, value) }, i,
			func(k protocol.Keys) []string { return []string{k.Q} }, map[string]func(*scene){"Q as it was put": func(s *scene) { s.at.Q-- }, "I.mod=prev": writeRecord}},
	}
}
