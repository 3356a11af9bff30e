package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/proxy/suggest"
	"hooklock/proxy/wire"
)

// TestWhatPassesThroughIsLearnedFrom: from each delivery whose body came whole and whose path the
// service knows, whatever its length and framing.
func TestWhatPassesThroughIsLearnedFrom(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/early": // the answer comes before the body is read
		default:
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}))
	defer up.Close()
	pool := wire.NewUpstream(wire.Options{Addr: up.Listener.Addr().String()})
	defer pool.Close()
	learner := suggest.NewRecorder(8 << 20)
	h, door := passes(t, HandlerOptions{Upstream: pool, Unmatched: pool, Base: t.Context(), Recorder: learner})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	var all sync.WaitGroup
	post := func(path string, body io.Reader) {
		r, err := client.Post("http://"+door.String()+path, "application/json", body)
		if err != nil {
			if path != "/early" {
				t.Error(err)
			}
			return
		}
		_ = r.Body.Close()
	}
	for i := range 4 { // fewer than the connections that the door takes: a closed one counts for a moment
		all.Go(func() {
			text := fmt.Sprintf(`{"event_id":"e%d","customer_id":%d}`, i, i%2)
			post("/whole", strings.NewReader(text))
			post("/chunked", io.MultiReader(strings.NewReader(text))) // its length is not known
			post("/long", bytes.NewReader(bytes.Repeat([]byte("x"), 70<<10+i)))
			post("/long", io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("y"), 70<<10+i))))
			post("/early", bytes.NewReader(make([]byte, 3<<20)))
			post("/missing", strings.NewReader(text))
			get(t, door)
		})
	}
	all.Wait()
	if err := h.pool.awaitEmpty(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := learner.Suggest(time.Time{}).Suggestions
	for path, want := range map[string]int{"/whole": 4, "/chunked": 4, "/long": 8, "/missing": 0, "/x": 0} {
		at := slices.IndexFunc(found, func(s *suggest.Suggestion) bool { return s.Path == path })
		switch {
		case at < 0 && want > 0, at >= 0 && found[at].Deliveries != want:
			t.Errorf("%s: want %d deliveries of %+v", path, want, found)
		case path == "/whole" && !strings.Contains(strings.Join(found[at].Sentences, ""), "{body.event_id}"):
			t.Errorf("%s", found[at].Sentences)
		case path == "/long" && !strings.Contains(strings.Join(found[at].Sentences, ""), "8 bodies are longer"):
			t.Errorf("%s", found[at].Sentences)
		}
	}
}

// A sender that gives up before the answer comes has a reason to send again, so its next delivery
// of the same body is a retry, though the service says 200 to both.
func TestASenderThatGivesUpTeachesWhatARetryIs(t *testing.T) {
	var late atomic.Int64
	answer, asked := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Slow") != "" {
			late.Add(int64(soon))
			asked <- struct{}{}
			<-answer
		}
	}))
	defer up.Close()
	pool := wire.NewUpstream(wire.Options{Addr: up.Listener.Addr().String()})
	defer pool.Close()
	learner := suggest.NewRecorder(8 << 20)
	began := time.Now()
	h, door := passes(t, HandlerOptions{Upstream: pool, Unmatched: pool, Base: t.Context(), Recorder: learner,
		Now: func() time.Time { return began.Add(time.Duration(late.Load())) }})
	send := func(order int, header string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", door.String())
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"order_id":"o%d"}`, order)
		_, err = fmt.Fprintf(c, "POST /in HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s",
			header, len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for order := range 4 {
		c := send(order, "X-Slow: 1\r\n")
		<-asked
		_ = c.Close()
		answer <- struct{}{}
		c = send(order, "")
		if said, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(said, []byte("HTTP/1.1 200")) {
			t.Errorf("%s, %v", said, err)
		}
		_ = c.Close()
	}
	if err := h.pool.awaitEmpty(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := learner.Suggest(time.Time{}).Suggestions[0]
	if text := strings.Join(found.Sentences, "\n"); found.EventID != "{fingerprint}" ||
		!strings.Contains(text, "4 of them failed (4 because the sender did not wait for the answer)") ||
		!strings.Contains(text, "4 deliveries came again (4 after a failure)") {
		t.Errorf("%s\n%s", found.EventID, text)
	}
}
