package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// BenchmarkExhaustion measures what a flood of large unsigned bodies does to the memory of the
// process: 200 of 8 MiB at once, in front of an upstream that takes two seconds for each.
// docs/exposed.md has its figures.
func BenchmarkExhaustion(b *testing.B) {
	const senders, size = 200, 8 << 20
	body := strings.Repeat("x", size)
	for b.Loop() {
		up := testkit.NewUpstream(b, func(r *testkit.Received) string {
			select {
			case <-time.After(2 * time.Second):
			case <-r.Context.Done():
			}
			return testkit.OK("done")
		})
		h := testkit.Serve(b, hooklockProgram, shared.config(strings.TrimPrefix(ownPrefix(), "/"), ""),
			"GOMEMLIMIT=460MiB")
		before := resident(b, h.Pid())
		var peak float64
		watched, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			for {
				select {
				case <-time.After(20 * time.Millisecond):
					peak = max(peak, resident(b, h.Pid()))
				case <-over:
					return
				}
			}
		}()
		var flood sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for i := range senders {
			c := testkit.Dial(b, h.Addr)
			_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
			flood.Go(func() {
				defer c.Close()
				c.Say(testkit.Request(fmt.Sprintf("/plain/%d", i), body))
				if a, err := c.TryAnswer("POST"); err == nil {
					mu.Lock()
					statuses[a.Status]++
					mu.Unlock()
				}
			})
		}
		flood.Wait()
		since := time.Now()
		testkit.Until(b, "the memory is given back", func() bool { return resident(b, h.Pid()) < before+32 })
		b.ReportMetric(time.Since(since).Seconds(), "s-until-given-back")
		close(over)
		<-watched
		b.ReportMetric(before, "MiB-before")
		b.ReportMetric(peak, "MiB-peak")
		b.ReportMetric(resident(b, h.Pid()), "MiB-after")
		b.ReportMetric(float64(statuses[200]), "ran")
		b.ReportMetric(float64(statuses[503]), "refused")
		h.Kill()
		up.Close()
	}
}

// resident is the memory of a process in MiB, as the kernel counts it.
func resident(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("there is no /proc to read it from: ", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(fields[0], 64)
	return kib / 1024
}
