package serve

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// receiver is a sample service: it acts on every request, and shows what it did. It knows nothing
// of Hooklock.
type receiver struct {
	now   func() time.Time
	ended <-chan struct{} // closed when the demo ends: its requests sleep no longer

	mu       sync.Mutex
	events   []received
	receipts map[string]int // the number of events of each path
	down     time.Time      // out of order until then
}

type received struct {
	at      time.Time
	target  string
	attempt string
	token   string
	body    string
}

const (
	keptEvents  = 200
	longestBody = 1 << 20
	longestNap  = time.Minute
)

// serveSample serves the sample service at ln until end is called, which returns why it had ended
// before.
func (r *receiver) serveSample(ln net.Listener) (end func() error) {
	server := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	return func() error {
		_ = server.Close() // a sample service needs no graceful stop
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
}

// ServeHTTP runs an event, or shows the page of events.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		r.writePage(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, longestBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.isDown(req.URL.Query().Get("down")) {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	n := r.addEvent(req, string(body))
	if req.URL.Query().Has("fails") {
		http.Error(w, "database is locked", http.StatusInternalServerError)
		return
	}
	if nap, err := time.ParseDuration(req.URL.Query().Get("sleep")); err == nil {
		timer := time.NewTimer(min(nap, longestNap))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.ended:
		case <-req.Context().Done():
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"charged":true,"receipt":%d}`+"\n", n)
}

// addEvent adds an event, and returns the number of its receipt.
func (r *receiver) addEvent(req *http.Request, body string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, received{r.now(), req.RequestURI, req.Header.Get("Hooklock-Attempt"),
		req.Header.Get("Hooklock-Fencing-Token"), body})
	if len(r.events) > keptEvents {
		r.events = r.events[1:]
	}
	if r.receipts == nil {
		r.receipts = map[string]int{}
	}
	r.receipts[req.URL.Path]++
	return r.receipts[req.URL.Path]
}

// hasArrived reports whether an event of a path has arrived.
func (r *receiver) hasArrived(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.receipts[path] > 0
}

// isDown reports whether it is out of order. A span puts it out of order for that time.
func (r *receiver) isDown(span string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d, err := time.ParseDuration(span); err == nil {
		r.down = r.now().Add(min(d, longestNap))
	}
	return r.now().Before(r.down)
}

func (r *receiver) writePage(w http.ResponseWriter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=2><title>legacy "+
		"receiver</title>"+
		"<style>body{font:16px system-ui;margin:2em}td,th{padding:.3em 1em;text-align:left;border-bottom:1px solid "+
		"#ddd}</style>"+
		"<h1>Events that reached the legacy service: %d</h1><table><tr><th>time<th>target<th>attempt<th>fencing "+
		"token<th>body", len(r.events))
	for i := len(r.events) - 1; i >= 0; i-- {
		e := &r.events[i]
		fmt.Fprintf(w, "<tr><td>%s<td>%s<td>%s<td>%s<td><code>%s</code>", e.at.Format("15:04:05.000"),
			html.EscapeString(e.target),
			html.EscapeString(e.attempt), html.EscapeString(e.token), html.EscapeString(e.body))
	}
	fmt.Fprint(w, "</table>")
}
