package behind

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// TestAnIdleConnectionGivesItsWorkerBack: Apache has 8 workers, and each kept connection occupies
// one, for the 60 s of its KeepAliveTimeout. After a burst of 8 callers a request of another client
// is answered soon.
func TestAnIdleConnectionGivesItsWorkerBack(t *testing.T) {
	var mu sync.Mutex
	waiting := 0
	together := make(chan struct{})
	backend := testkit.NewUpstream(t, func(*testkit.Received) string { // it answers when all callers are there
		mu.Lock()
		mine := together
		if waiting++; waiting == callers {
			waiting, together = 0, make(chan struct{})
			close(mine)
		}
		mu.Unlock()
		<-mine
		return testkit.OK("read")
	})
	listen := testkit.FreePort(t)
	log := apache("mpm_prefork", "", callers)(t, listen, backend.Addr)
	hook := testkit.Serve(t, hooklockProgram, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
upstream: http://%s
unmatched: pass
routes: [{name: all, path: "/hooks/{n}", workflow: "{path.n}", event_id: "{path.n}"}]
`, t.TempDir(), listen))
	for burst := range 5 {
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for n := range 20 {
					testkit.Exchange(t, hook.Addr,
						fmt.Sprintf(
							"POST /reads/%d-%d-%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", burst, caller, n))
				}
			})
		}
		all.Wait()
		began := time.Now()
		testkit.Exchange(t, listen, "GET /leaves/other HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("burst %d: another client waited %v", burst, took)
		}
	}
	shared := 0
	for _, line := range log.lines(t) {
		if !strings.HasSuffix(line, " 0") {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no connection was kept, so that none could hold a worker")
	}
}
