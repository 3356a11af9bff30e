package embedded

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A restart gives a lease no more time than what it did not yet have written down: where a process
// is replaced more often than records expire, they would stay for ever.
func TestALeaseThatWasHalfOverIsSoAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	synctest.Test(t, func(t *testing.T) {
		s, err := Start(Options{Dir: dir, tidyEvery: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := s.Client().Grant(t.Context(), 3600)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Minute)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Start(Options{Dir: dir, tidyEvery: time.Hour}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		left := func() int64 {
			l, err := s.Client().TimeToLive(t.Context(), lease.ID)
			if err != nil {
				t.Fatal(err)
			}
			return l.TTL
		}
		if ttl := left(); ttl < 20*60-1 || ttl > 26*60 {
			t.Errorf("%d s are left of 20 minutes", ttl)
		}
		time.Sleep(26 * time.Minute)
		if ttl := left(); ttl != -1 {
			t.Errorf("it lives on, for %d s", ttl)
		}
	})
}
