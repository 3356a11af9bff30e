package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	smallQuota = 16 << 20
	patience   = 60 * time.Second
)

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// small starts an etcd with a small quota that looks after itself every so often, or never: then
// the test does.
func small(t *testing.T, dir string, every time.Duration) (*Server, *lines) {
	t.Helper()
	log := &lines{}
	s, err := Start(Options{Dir: dir, Quota: smallQuota, Logger: slog.New(slog.NewTextHandler(log, nil)),
		tidyEvery: every})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if every == never {
		s.stopTidy()
		s.tidying.Wait()
	}
	return s, log
}

// within is a context for what must happen.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// fill writes values of 256 KiB under the names that name gives, until etcd takes no more.
func fill(t *testing.T, s *Server, name func(n int) string) {
	t.Helper()
	ctx := within(t)
	value := strings.Repeat("x", 256<<10)
	for n := 0; ; n++ {
		_, err := s.Client().Put(ctx, name(n), value)
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

// never is longer than any test.
const never = time.Hour

func TestAnEtcdThatHistoryHasFilledWorksAgainByItself(t *testing.T) {
	s, log := small(t, filepath.Join(t.TempDir(), "data"), 50*time.Millisecond)
	value := strings.Repeat("x", 1<<20)
	for n := range 100 { // six times the quota
		until(t, fmt.Sprintf("put %d", n), func() bool { return taken(t, s, "the same key", value) })
	}
	if said := log.String(); !strings.Contains(said, "etcd.defragmented") {
		t.Errorf("it said %s", said)
	}
}

func TestAnEtcdThatWasLeftFullWorksAgainAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, _ := small(t, dir, never)
	fill(t, s, func(int) string { return "the same key" })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, log := small(t, dir, 50*time.Millisecond)
	awaitRoom(t, s)
	until(t, "it says that it is full, and that it has room", func() bool {
		full, room, both := strings.Cut(log.String(), "msg=etcd.room")
		return both && strings.Contains(full, "msg=etcd.full") && room != ""
	})
	if _, err := s.Client().Grant(within(t), 60); err != nil {
		t.Error(err)
	}
}

// awaitRoom writes until etcd takes it.
func awaitRoom(t *testing.T, s *Server) {
	t.Helper()
	until(t, "there is room", func() bool { return taken(t, s, "new", "value") })
}

// taken writes, and reports whether there was room.
func taken(t *testing.T, s *Server, key, value string) bool {
	t.Helper()
	_, err := s.Client().Put(within(t), key, value)
	if err != nil && !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	return err == nil
}

// until asks again and again.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !f(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestAnEtcdThatRecordsFillStaysFullUntilTheyAreGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, _ := small(t, dir, never)
	ctx := within(t)
	// What is written leaves gaps in the file, more of them where the machine is slow. Once a
	// defragmentation has taken those, it is the records that fill it.
	for round := 0; !s.Space().Full; round++ {
		fill(t, s, func(n int) string { return fmt.Sprintf("record %d in round %d", n, round) })
		for range 3 * tidyRest {
			if err := s.tidier.tidyOnce(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if full := s.Space(); !strings.Contains(full.String(), "etcd.embedded.quota") {
		t.Fatalf("after looks: %+v", full)
	}
	if _, err := s.Client().Delete(ctx, "record", clientv3.WithPrefix()); err != nil { // as when they expire
		t.Fatal(err)
	}
	for s.Space().Full {
		if err := s.tidier.tidyOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Client().Put(ctx, "new", "value"); err != nil {
		t.Error(err)
	}
}

func TestARaisedQuotaEndsTheAlarm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, _ := small(t, dir, never)
	fill(t, s, func(n int) string { return fmt.Sprintf("record %d", n) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Start(Options{Dir: dir, Quota: 4 * smallQuota, Logger: slog.New(slog.DiscardHandler),
		tidyEvery: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	awaitRoom(t, s)
}

func TestAnEtcdWithRoomIsLeftAlone(t *testing.T) {
	s, log := small(t, filepath.Join(t.TempDir(), "data"), never)
	if s := s.Space(); s.Size == 0 || s.Quota != smallQuota || s.Full {
		t.Errorf("at first %+v", s)
	}
	ctx := within(t)
	for range 3 {
		if _, err := s.Client().Put(ctx, "k", "v"); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 * tidyRest {
		if err := s.tidier.tidyOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if compacted := s.etcd.Server.KV().FirstRev(); compacted > 1 || log.String() != "" {
		t.Errorf("compacted to %d, said %s", compacted, log)
	}
	if s := s.Space(); s.Size == 0 || s.Quota != smallQuota || s.Full {
		t.Errorf("%+v", s)
	}
}

func TestLongHistoryGoesButNotWhatIsRecent(t *testing.T) {
	s, log := small(t, filepath.Join(t.TempDir(), "data"), never)
	s.tidier.history = 100
	ctx := within(t)
	write := func(n int) {
		t.Helper()
		for range n {
			if _, err := s.Client().Put(ctx, "k", "v"); err != nil {
				t.Fatal(err)
			}
		}
	}
	look := func(n int) {
		t.Helper()
		for range n {
			if err := s.tidier.tidyOnce(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := s.etcd.Server.KV().FirstRev
	write(50)
	look(5 * recentLooks)
	if at := first(); at > 1 {
		t.Errorf("a short history was compacted to %d", at)
	}
	write(100)
	long := s.etcd.Server.KV().Rev()
	look(recentLooks - 1)
	if at := first(); at > 1 {
		t.Errorf("what was written %d looks ago was compacted to %d", recentLooks-1, at)
	}
	look(1)
	write(50)
	look(2 * recentLooks)
	if at := first(); at != long {
		t.Errorf("history begins at %d, not at %d", at, long)
	}
	if log.String() != "" {
		t.Errorf("said %s", log)
	}
}
