//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const roleLoad = "load"

// Kinds of requests. On a route they are named by the decision that each of them must get.
const (
	kindPlain    = "plain"    // a path that is on no route
	kindBodiless = "bodiless" // the same without a body, whose connection to the upstream is used again
	kindReplayed = "replayed" // one settled event, over and over
	kindLocked   = "locked"   // new events of a workflow that somebody holds
	kindExecuted = "executed" // new events, each connection with a workflow of its own
	kindInTime   = "in_time"  // the same on a route that parks, whose upstream answers in time
	kindParked   = "parked"   // the same on a route that parks everything at once, and larger
	kindAlone    = "alone"    // new events over one connection
	kindPuts     = "puts"     // no requests: two puts in etcd, one after the other
	kindSpread   = "spread"   // new events of many workflows, no two of one at a time; also of whoever has no decisions
	kindHot      = "hot"      // new events of one workflow, over all connections
	kindCopies   = "copies"   // one settled event, over and over; also of whoever has no decisions
)

// Sizes of the body of a usual webhook delivery, and of one that is parked.
const (
	bodySize   = 1024
	parkedSize = 2048
)

// loadOptions say what to send, and for how long.
type loadOptions struct {
	target      string // host:port
	kind        string
	run         string // a part of every event ID
	connections int
	path        string // of spread, hot and copies; {flow} in it is the workflow
	workflows   int    // of spread
	requests    int    // of all connections, if that is less than there is time for; 0 = no limit
	rate        int    // requests a second of all connections; 0 = each as soon as it has the answer of the one before
	duration    time.Duration
}

// defaultPath is of most of those who are compared.
const defaultPath = "/hooks/{flow}"

// loadResult is what a load process prints.
type loadResult struct {
	Requests int
	Wrong    int     // requests that did not get what their kind must get
	Why      string  // what the first wrong one got
	Seconds  float64 // from the first request to the last answer
	P50      float64 // milliseconds
	P99      float64 // milliseconds
	Fewest   int     // requests of the connection that got the fewest
	Most     int     // and the most
}

// runLoad sends requests and prints a loadResult as JSON.
func runLoad(ctx context.Context, o loadOptions, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	senders := make([]sender, o.connections)
	exchange := (*sender).deliver
	if o.kind == kindPuts {
		puts, err := dialPuts(o.target)
		if err != nil {
			return err
		}
		defer puts.close()
		exchange = puts.put
	}
	start := time.Now()
	var all sync.WaitGroup
	for i := range senders {
		s := &senders[i]
		s.o, s.index = o, i
		all.Go(func() { s.send(ctx, exchange) })
	}
	all.Wait()
	return json.NewEncoder(out).Encode(sum(senders, time.Since(start)))
}

func sum(senders []sender, took time.Duration) loadResult {
	r := loadResult{Seconds: took.Seconds()}
	var latencies []time.Duration
	r.Fewest = len(senders[0].latencies)
	for i := range senders {
		s := &senders[i]
		r.Fewest, r.Most = min(r.Fewest, len(s.latencies)), max(r.Most, len(s.latencies))
		latencies = append(latencies, s.latencies...)
		r.Wrong += s.wrong
		if r.Why == "" {
			r.Why = s.why
		}
	}
	slices.Sort(latencies)
	r.Requests = len(latencies)
	if r.Requests > 0 {
		r.P50 = latencies[r.Requests/2].Seconds() * 1e3
		r.P99 = latencies[r.Requests*99/100].Seconds() * 1e3
	}
	return r
}

// sender is one connection's worth of requests, one at a time.
type sender struct {
	o         loadOptions
	index     int
	conn      net.Conn
	reader    *bufio.Reader
	response  fasthttp.Response
	latencies []time.Duration // of the requests that got what they must get
	wrong     int
	why       string
}

// send goes on until ctx ends, or until so much is wrong that it measures nothing.
func (s *sender) send(ctx context.Context, exchange func(s *sender, n int) error) {
	defer s.hangUp()
	pace := time.NewTicker(max(time.Microsecond,
		time.Duration(s.o.connections)*time.Second/time.Duration(max(s.o.rate, 1))))
	defer pace.Stop()
	for n := 0; ctx.Err() == nil && s.wrong < 10 &&
		(s.o.requests == 0 || n*s.o.connections+s.index < s.o.requests); n++ {
		if s.o.rate > 0 {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return
			}
		}
		start := time.Now()
		if err := exchange(s, n); err != nil {
			s.wrong++
			s.why = err.Error()
			s.hangUp()
			continue
		}
		s.latencies = append(s.latencies, time.Since(start))
	}
}

// deliver is the n-th request of a connection.
func (s *sender) deliver(n int) error {
	err := s.exchange(s.request(n), &s.response)
	if err == nil {
		err = s.check(&s.response)
	}
	if err == nil && s.response.ConnectionClose() {
		s.hangUp()
	}
	return err
}

func (s *sender) exchange(request []byte, response *fasthttp.Response) error {
	if s.conn == nil {
		conn, err := net.DialTimeout("tcp", s.o.target, 20*time.Second)
		if err != nil {
			return err
		}
		s.conn, s.reader = conn, bufio.NewReader(conn)
	}
	if err := s.conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := s.conn.Write(request); err != nil {
		return err
	}
	return response.Read(s.reader)
}

func (s *sender) hangUp() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// check tells what is wrong with an answer.
func (s *sender) check(r *fasthttp.Response) error {
	want, decided := fasthttp.StatusOK, s.o.kind
	switch s.o.kind {
	case kindLocked:
		want = fasthttp.StatusConflict
	case kindParked:
		want = fasthttp.StatusAccepted
	case kindInTime, kindAlone, kindSpread, kindHot:
		decided = kindExecuted
	case kindCopies:
		decided = kindReplayed
	}
	if r.StatusCode() != want {
		return fmt.Errorf("status %d, want %d: %.200s", r.StatusCode(), want, r.Body())
	}
	decision := string(r.Header.Peek("Hooklock-Decision"))
	if decision == "" {
		decision = string(r.Header.Peek("Bench-Decision")) // test/peers
	}
	if decision == decided || decision == "" && slices.Contains(undecided, s.o.kind) {
		return nil
	}
	return fmt.Errorf("decision %q, want %q", decision, decided)
}

// undecided are the kinds of requests that go to others than Hooklock, too.
var undecided = []string{kindPlain, kindBodiless, kindSpread, kindHot, kindCopies}

// request is the n-th request of this connection.
func (s *sender) request(n int) []byte {
	switch s.o.kind {
	case kindReplayed:
		return delivery("/hooks/settled", settledEvent(s.o.run))
	case kindLocked:
		return delivery(pathHeld, s.event(n))
	case kindSpread: // a workflow is one connection's alone
		return delivery(s.path("flow-"+strconv.Itoa(s.index+n%max(s.o.workflows/s.o.connections, 1)*s.o.connections)),
			s.event(n))
	case kindHot:
		return delivery(s.path("hot"), s.event(n))
	case kindCopies:
		return delivery(s.path("settled"), settledEvent(s.o.run))
	case kindExecuted, kindAlone:
		return delivery("/hooks/flow-"+strconv.Itoa(s.index), s.event(n))
	case kindInTime:
		return delivery("/parks/flow-"+strconv.Itoa(s.index), s.event(n))
	case kindParked:
		return sized(parkedSize, "/accepts/flow-"+strconv.Itoa(s.index), s.event(n))
	case kindBodiless:
		return bodiless
	default:
		return delivery("/plain", "evt_fixed")
	}
}

func (s *sender) path(workflow string) string {
	return strings.Replace(s.o.path, "{flow}", workflow, 1)
}

func (s *sender) event(n int) string {
	return "evt_" + s.o.run + "_" + strconv.Itoa(s.index) + "_" + strconv.Itoa(n)
}

func settledEvent(run string) string { return "evt_" + run + "_settled" }

// body is JSON, as most senders' are. Deliveries have the beginning of it.
var body = `{"id":"evt_1","data":"` + strings.Repeat("x", parkedSize-24) + `"}`

// signature is what shows that a delivery is its sender's, as far as the proxies look at it.
const signature = "t=1760000000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"

// delivery is a request as a sender of webhooks writes it.
func delivery(path, event string, more ...string) []byte {
	return sized(bodySize, path, event, more...)
}

// bodiless is a request that passes through, as a browser or a probe makes it.
var bodiless = []byte("GET /plain?page=1 HTTP/1.1\r\nHost: hooks.example.com\r\nAccept: */*\r\nUser-Agent: " +
	"Bench/1.0 (+https://example.com/webhooks)\r\n" +
	"Accept-Language: en\r\nCookie: session=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd\r\n\r\n")

// sized is a delivery with a body of so many bytes.
func sized(size int, path, event string, more ...string) []byte {
	b := make([]byte, 0, 512+size)
	b = append(b, "POST "...)
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: hooks.example.com\r\nAccept: */*\r\nUser-Agent: Bench/1.0 "+
		"(+https://example.com/webhooks)\r\n"+
		"Content-Type: application/json; charset=utf-8\r\nX-Signature: "+signature+"\r\nIdempotency-Key: "...)
	b = append(b, event...)
	for _, line := range more {
		b = append(append(b, "\r\n"...), line...)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(size), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body[:size]...)
}

// once sends one request and wants a 200.
func once(target string, request []byte) error {
	s := &sender{o: loadOptions{target: target, kind: kindPlain}}
	defer s.hangUp()
	var response fasthttp.Response
	if err := s.exchange(request, &response); err != nil {
		return err
	}
	if response.StatusCode() != fasthttp.StatusOK { // whatever was decided
		return fmt.Errorf("status %d, want 200: %.200s", response.StatusCode(), response.Body())
	}
	return nil
}
