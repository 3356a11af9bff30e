//go:build linux

package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/owned"
	"hooklock/idem"
)

// inTurns lets kinds take turns, of so many pairs on parallel goroutines each. It returns the turns
// of each kind.
func inTurns(b *testing.B, e *benchMember, parallel, pairs int, kinds ...func(n int) error) [][]turn {
	b.Helper()
	turns := make([][]turn, len(kinds))
	for _, f := range kinds { // brings connections, leases and memory
		spread(b, e, parallel, -1, pairs, f)
	}
	b.ResetTimer()
	for n := range b.N {
		for i := range kinds {
			kind := (n + i) % len(kinds)
			turns[kind] = append(turns[kind], spread(b, e, parallel, n, pairs, kinds[kind]))
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // of no meaning
	return turns
}

// benchPrice is benchAgainst the claim and the settle of an ordinary event.
func benchPrice(b *testing.B, e *benchMember, parallel int, f func(n int) error) {
	b.Helper()
	benchAgainst(b, e, parallel, benchHooklock(b, e), f)
}

// benchAgainst holds what f costs against base, in turns: x-wall, x-cpu, x-client and x-server are
// how many times as much time, and CPU of both sides or one, it takes, as the median over the
// turns.
func benchAgainst(b *testing.B, e *benchMember, parallel int, base, f func(n int) error) {
	b.Helper()
	pairs := max(1000, 64*parallel) // the CPU of a process is told in hundredths of a second
	turns := inTurns(b, e, parallel, pairs, base, f)
	for name, of := range map[string]func(turn) time.Duration{
		"x-wall": func(t turn) time.Duration { return t.wall }, "x-cpu": turn.cpu,
		"x-client": func(t turn) time.Duration {
			return t.client
		}, "x-server": func(t turn) time.Duration { return t.server },
	} {
		b.ReportMetric(median(turns[0], func(i int) float64 {
			return of(turns[1][i]).Seconds() / max(of(turns[0][i]).Seconds(), 1e-9)
		}), name)
	}
}

// claimAndSettle is a pair of what lock makes.
func claimAndSettle(s *Store, lock func(n int) idem.Lock) func(n int) error {
	return claimAndSettleWith(s, lock, func() idem.End { return success("ok") })
}

func claimAndSettleWith(s *Store, lock func(n int) idem.Lock, end func() idem.End) func(n int) error {
	ctx := context.Background()
	return func(n int) error {
		var held idem.RunningLock
		var seen *idem.Obstacle
		err := applied(func() (err error) { held, seen, err = s.Claim(ctx, lock(n), 0); return err })
		if err != nil || held == nil {
			return fmt.Errorf("claim: %+v %w", seen, err)
		}
		_, err = held.Settle(ctx, end())
		return err
	}
}

// BenchmarkOrder is the price of an event that stands in a scope.
//
//	go test -run '^$' -bench Order -benchtime 21x ./etcdlock
func BenchmarkOrder(b *testing.B) {
	e := startMember(b)
	s := openStore(b, Options{Endpoints: []string{e.endpoint}})
	benchPrice(b, e, 64, claimAndSettle(s, func(n int) idem.Lock {
		return ordered(fmt.Sprintf("o%d", n), "one", strconv.Itoa(n))
	}))
}

// BenchmarkAnswerApart is the price of an answer of so many bytes that has a key of its own,
// against one that stays in its record.
//
//	go test -run '^$' -bench AnswerApart -benchtime 9x ./etcdlock
func BenchmarkAnswerApart(b *testing.B) {
	for _, size := range []int{65, 256, 512} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			e := startMember(b)
			s := openStore(b, Options{Endpoints: []string{e.endpoint}})
			kept := func(name string, apart time.Duration) func(n int) error {
				return claimAndSettleWith(s, func(n int) idem.Lock {
					l := lockFor(fmt.Sprint(name, n), "one")
					l.ReplayBody, l.ReplayFor = size, apart
					return l
				}, func() idem.End { return success(strings.Repeat("a", size)) })
			}
			benchAgainst(b, e, 64, kept("with", 0), kept("apart", 10*time.Minute))
		})
	}
}

// BenchmarkSlotsThatNeverBind is the price of a limit with room for all.
//
//	go test -run '^$' -bench SlotsThatNeverBind -benchtime 20x ./etcdlock
func BenchmarkSlotsThatNeverBind(b *testing.B) {
	for _, parallel := range []int{1, 64} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) {
			e := startMember(b)
			s := openStore(b, Options{Endpoints: []string{e.endpoint}, Limit: func(string, idem.Slot) int {
				return 1000
			}})
			benchPrice(b, e, parallel, claimAndSettle(s, func(n int) idem.Lock {
				return limitedLock(fmt.Sprintf("s%d", n), "one")
			}))
		})
	}
}

// BenchmarkLatest is the price of an event that waits and is replaced by the next one: it takes its
// place, and is told what became of it.
//
//	go test -run '^$' -bench Latest -benchtime 20x ./etcdlock
func BenchmarkLatest(b *testing.B) {
	for _, parallel := range []int{1, 64} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) { benchLatest(b, parallel) })
	}
}

func benchLatest(b *testing.B, parallel int) {
	e := startMember(b)
	s := openStore(b, Options{Endpoints: []string{e.endpoint}})
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	running := make([]*owned.Lock, parallel)
	waiting := make([]<-chan error, parallel) // how the wait of the newest of each workflow ended
	for worker := range running {
		running[worker] = mustClaim(b, s, lockFor(fmt.Sprintf("busy%d", worker), "runs"), 0)
	}
	benchPrice(b, e, parallel, func(n int) error {
		worker := n % parallel
		place, seen, err := s.Enqueue(ctx, newestLock(fmt.Sprintf("busy%d", worker), fmt.Sprint(n)), 0,
			running[worker].Lock().Revision)
		if err != nil || place == nil {
			return fmt.Errorf("enqueue: %+v %w", seen, err)
		}
		before, ended := waiting[worker], make(chan error, 1)
		waiting[worker] = ended
		go func() {
			_, err := place.Await(ctx, 0)
			ended <- err
		}()
		if before == nil {
			return nil
		}
		if err := <-before; !errors.Is(err, idem.ErrCancelled) {
			return fmt.Errorf("the one before: %w", err)
		}
		return nil
	})
}
