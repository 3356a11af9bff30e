package memory

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"hooklock/proxy/wire"
)

func is(n uint64) func() (uint64, error) { return func() (uint64, error) { return n, nil } }

func none() (uint64, error) { return 0, errors.New("no such thing here") }

func TestTheLimitIsTheFirstOneThatThereIs(t *testing.T) {
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		runtime         int64
		cgroup, machine func() (uint64, error)
		from            string
		bodies          int64
	}{
		"GOMEMLIMIT goes before the cgroup": {400 * mib, is(512 * mib), is(8192 * mib), FromRuntime, 200 * mib},
		"a cgroup goes before the machine":  {math.MaxInt64, is(1000), is(8192 * mib), FromCgroup, 450},
		"a cgroup without a limit does not": {math.MaxInt64, none, is(8192 * mib), FromMachine, 2048 * mib},
		"nor does one that is above the machine": {math.MaxInt64, is(math.MaxInt64 - 4095), is(8192 * mib),
			FromMachine, 2048 * mib},
		"a machine that does not tell has 2 GiB":   {math.MaxInt64, none, none, FromMachine, 512 * mib},
		"and a cgroup bounds it where it is small": {math.MaxInt64, is(1000), none, FromCgroup, 450},
	} {
		if got := chooseLimit(tt.runtime, tt.cgroup, tt.machine); got.From != tt.from || got.Bodies() != tt.bodies {
			t.Errorf("%s: %+v, %d for bodies", name, got, got.Bodies())
		}
	}
}

func newKeeper() (*Keeper, *wire.Budget, *bytes.Buffer, *int) {
	var out bytes.Buffer
	freed := 0
	b := wire.NewBudget(1 << 30)
	k := NewKeeper(b, Limit{}, slog.New(slog.NewTextHandler(&out, nil)))
	k.free = func() { freed++ }
	return k, b, &out, &freed
}

func TestMemoryIsGivenBackOnceAPeakIsOver(t *testing.T) {
	k, b, _, freed := newKeeper()
	a := b.Open()
	a.Take(200 << 20)
	a.Close() // between two looks
	k.giveBack()
	for range quiet/look - 1 {
		k.giveBack()
		if *freed != 0 {
			t.Fatal("given back before it was quiet")
		}
	}
	for range 100 {
		k.giveBack()
	}
	if *freed != 1 {
		t.Errorf("given back %d times", *freed)
	}
}

func TestMemoryIsNotGivenBackBetweenWaves(t *testing.T) {
	k, b, _, freed := newKeeper()
	for range 100 {
		a := b.Open()
		a.Take(200 << 20)
		a.Close()
		k.giveBack()
		k.giveBack()
	}
	if *freed != 0 {
		t.Errorf("given back %d times between waves", *freed)
	}
}

func TestRefusedBodiesAreLoggedAtOnceAndThenOnceAMinute(t *testing.T) {
	k, b, out, _ := newKeeper()
	b.SetLimit(0)
	a := b.Open()
	for range 90 {
		a.Take(1)
		k.logRefused()
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "refused=1 ") || !strings.Contains(lines[1], "refused=60 ") {
		t.Errorf("the log says\n%s", out)
	}
}
