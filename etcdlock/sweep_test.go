package etcdlock

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
)

// logged is closed when a line of the log begins so.
type logged struct {
	what string
	once sync.Once
	said chan struct{}
}

func (l *logged) Write(line []byte) (int, error) {
	if strings.Contains(string(line), l.what) {
		l.once.Do(func() { close(l.said) })
	}
	return len(line), nil
}

// TestALockThatCouldNotBeReapedIsReapedLater, also where nobody comes who would meet it: what is
// parked behind it waits for nothing else, and neither do those who wait for its slots.
func TestALockThatCouldNotBeReapedIsReapedLater(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartWithQuota(t, 1<<20)
	wire := etcdtest.NewWire(t, e.Endpoint)
	log := &logged{what: "lock.bury", said: make(chan struct{})}
	dies := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	first := mustClaim(t, dies, lockFor("w", "first"), 0)
	l := parkedLock("w", "second")
	mustPark(t, s, l, first.Lock().Revision)
	e.Fill(t)
	wire.Blackhole(true)
	revoke(t, e, dies)
	select {
	case <-log.said:
	case <-time.After(patience):
		t.Fatal("nothing has tried to reap it")
	}
	e.MakeRoom(t)
	if taken := takeNext(t, s); taken.Running.Lock().Execution != l.Execution {
		t.Errorf("took %+v", taken.Running.Lock())
	}
}
