//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// An outage: events are parked while nobody listens where the upstream is, and run when somebody
// does. Once alone, and once while deliveries of other workflows come, at a pace that leaves the
// machine room, as after most outages.
const (
	outageFlow    = 10  // events of a workflow
	outageWriters = 32  // senders while the upstream is away
	besideSenders = 8   // of the other workflows
	besideRate    = 200 // deliveries a second, of all of them
	besideSlice   = time.Second
	besideSlices  = 8 // after a drain
)

// drained is what an outage gave.
type drained struct {
	// events per second: while they were parked, and run without and with other deliveries
	parked, alone, beside float64
	during, after         float64 // p50 of the other deliveries, milliseconds
}

// service is the upstream, which comes and goes. It sees to it that each workflow is in order.
type service struct {
	addr string

	mu    sync.Mutex
	run   string
	next  map[string]int // by workflow
	left  int            // events that have not come
	wrong error
	all   chan struct{} // closed when left is 0
	first time.Time
}

// expect is before an outage.
func (s *service) expect(run string, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.next, s.left, s.all, s.first = run, map[string]int{}, events, make(chan struct{}), time.Time{}
}

// serve is there until ctx ends.
func (s *service) serve(ctx context.Context) error {
	ln, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	server := &fasthttp.Server{Handler: s.answer, NoDefaultServerHeader: true, CloseOnShutdown: true}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	<-ctx.Done()
	return errors.Join(server.Shutdown(), <-served)
}

func (s *service) answer(ctx *fasthttp.RequestCtx) {
	if flow, ok := strings.CutPrefix(string(ctx.Path()), "/parks/"); ok {
		s.note(flow, string(ctx.Request.Header.Peek("Idempotency-Key")))
	}
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`{"received":true}`)
}

func (s *service) note(flow, event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.next[flow]
	if want := outageEvent(s.run, flow, n); event != want && s.wrong == nil {
		s.wrong = fmt.Errorf("workflow %s got %s, and %s was next", flow, event, want)
	}
	if s.first.IsZero() {
		s.first = time.Now()
	}
	s.next[flow] = n + 1
	if s.left--; s.left == 0 {
		close(s.all)
	}
}

func outageEvent(run, flow string, n int) string {
	return "evt_" + run + "_" + flow + "_" + strconv.Itoa(n)
}

// outages measures what follows the table, and prints it.
func (f *family) outages(o *options, out io.Writer) error {
	addrs, err := freePorts(1)
	if err != nil {
		return err
	}
	s := &service{addr: addrs[0]}
	h, err := hooklockRun{program: o.hooklock, upstream: s.addr, name: "outage", log: quietLog}.start(f)
	if err != nil {
		return err
	}
	var all []drained
	for n := range o.outages {
		d, err := f.outage(o, s, h, n)
		if err != nil {
			return fmt.Errorf("outage %d: %w", n+1, err)
		}
		all = append(all, d)
	}
	of := func(value func(drained) float64) span {
		var values []float64
		for _, d := range all {
			values = append(values, value(d))
		}
		return spanOf(values)
	}
	fmt.Fprintf(out, "\n%d outages, each with %d events of %d workflows, which all ran in order; median (min–max)\n",
		o.outages, o.flows*outageFlow, o.flows)
	fmt.Fprintf(out, "parked while the upstream is away: %s a second\n", of(func(d drained) float64 {
		return d.parked
	}).text(0))
	fmt.Fprintf(out, "run when it is back: %s a second; beside %d deliveries a second of other workflows: %s\n",
		of(func(d drained) float64 {
			return d.alone
		}).text(0), besideRate, of(func(d drained) float64 { return d.beside }).text(0))
	fmt.Fprintf(out, "p50 of those meanwhile: %s ms, and afterwards %s ms: %s × (to reach: at most %.1f)\n",
		of(func(d drained) float64 { return d.during }).text(2), of(func(d drained) float64 { return d.after }).text(2),
		of(func(d drained) float64 { return d.during / d.after }).text(2), budgetDrain)
	return nil
}

// outage is two of them: nobody else comes after the first.
func (f *family) outage(o *options, s *service, h *child, n int) (d drained, err error) {
	if _, d.alone, err = f.away(o, s, h, strconv.Itoa(n)+"a", func(context.Context) error { return nil }); err != nil {
		return d, err
	}
	var during, after, half []float64
	d.parked, d.beside, err = f.away(o, s, h, strconv.Itoa(n)+"b", func(ctx context.Context) error {
		for i := 0; len(after) < besideSlices; i++ {
			over := s.over()
			load, err := f.load(h.addr, loadOptions{kind: kindExecuted, run: fmt.Sprintf("%db%d", n, i),
				connections: besideSenders, rate: besideRate, duration: besideSlice})
			switch {
			case err != nil:
				return err
			case over:
				after = append(after, load.P50)
			case !s.over():
				during = append(during, load.P50)
			default:
				half = append(half, load.P50) // of each
			}
		}
		return nil
	})
	if len(during) == 0 {
		during = half // it was over before the first second was
	}
	if err == nil && len(during) == 0 {
		err = errors.New("it was over before anything could be measured; more -flows")
	}
	if err == nil {
		d.during, d.after = spanOf(during).median, spanOf(after).median
	}
	return d, err
}

func (s *service) over() bool {
	select {
	case <-s.all:
		return true
	default:
		return false
	}
}

// away parks events while the upstream is away, and lets them run when it is back. beside is called
// then.
func (f *family) away(o *options, s *service, h *child, run string, beside func(context.Context) error) (parkRate,
	runRate float64, err error) {
	events := o.flows * outageFlow
	s.expect(run, events)
	start := time.Now()
	if err := park(h.addr, run, o.flows); err != nil {
		return 0, 0, err
	}
	parkRate = float64(events) / time.Since(start).Seconds()

	ctx, cancel := context.WithCancel(f.ctx)
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-served)
	}()
	// it is not asked for again for a while
	if err := f.await(h, func() bool { return once(h.addr, delivery("/hooks/back", "evt_"+run)) == nil }); err != nil {
		return 0, 0, err
	}
	ended := make(chan time.Time, 1)
	go func() {
		select {
		case <-s.all:
		case <-ctx.Done():
		}
		ended <- time.Now()
	}()
	if err := beside(ctx); err != nil {
		return 0, 0, err
	}
	select {
	case <-s.all:
	case <-time.After(drainPatience):
		return 0, 0, fmt.Errorf("%d of %d events did not run within %s", s.missing(), events, drainPatience)
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	end := <-ended
	err = f.await(h, func() bool { return parked(h) == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	return parkRate, float64(events) / end.Sub(s.first).Seconds(), errors.Join(err, s.wrong)
}

// drainPatience is how long it may take until all is run that was parked.
const drainPatience = 10 * time.Minute

func (s *service) missing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// park sends the events of an outage, those of a workflow one after the other.
func park(target, run string, flows int) error {
	failed := make(chan error, outageWriters)
	for writer := range outageWriters {
		go func() {
			s := &sender{o: loadOptions{target: target, kind: kindParked}}
			defer s.hangUp()
			var response fasthttp.Response
			for n := range outageFlow {
				for flow := writer; flow < flows; flow += outageWriters {
					name := "outage-" + strconv.Itoa(flow)
					err := s.exchange(delivery("/parks/"+name, outageEvent(run, name, n)), &response)
					if err == nil {
						err = s.check(&response)
					}
					if err != nil {
						failed <- err
						return
					}
					if response.ConnectionClose() {
						s.hangUp()
					}
				}
			}
			failed <- nil
		}()
	}
	var errs error
	for range outageWriters {
		errs = errors.Join(errs, <-failed)
	}
	return errs
}
