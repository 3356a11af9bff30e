//go:build linux

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const shopVariable = "HOOKLOCK_CLUSTER_SHOP"

// shop is a service that knows nothing of Hooklock: it takes 50 ms for a delivery, writes down that
// it ran, and answers. At SIGTERM it takes no more connections, and ends what runs, as servers do.
func shop() {
	dir := os.Getenv(shopVariable)
	_ = os.MkdirAll(dir, 0o777)
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" {
				return
			}
			<-time.After(50 * time.Millisecond) // the work
			f, err := os.OpenFile(filepath.Join(dir, "ran"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			defer f.Close()
			fmt.Fprintf(f, "%s %s\n", r.URL.Path, r.Header.Get("Idempotency-Key"))
			fmt.Fprintf(w, "ran on %s", os.Getenv("HOSTNAME"))
		})}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	over := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(over)
		_ = server.Shutdown(context.Background())
	})
	if err := server.ListenAndServe(); err != http.ErrServerClosed { //nolint:errorlint // it is that very value
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-over
	os.Exit(0)
}

// ran is how often the shop has run each delivery to path, by its key.
func ran(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(work, "shop", "ran"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, line := range strings.Split(string(text), "\n") {
		if at, key, _ := strings.Cut(line, " "); at == path {
			times[key]++
		}
	}
	return times
}
