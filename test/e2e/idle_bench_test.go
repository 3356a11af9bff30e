package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// BenchmarkIdle measures what a sidecar with its own etcd needs while no delivery comes: how long
// until it is ready, its resident memory a minute later, and the share of one core that it took in
// that minute. README.md has its figures.
func BenchmarkIdle(b *testing.B) {
	for b.Loop() {
		begun := time.Now()
		h := testkit.Serve(b, hooklockProgram, embedded(b.TempDir(), ""))
		ready := time.Since(begun)
		used := processorTime(b, h.Pid())
		<-time.After(time.Minute)
		b.ReportMetric(ready.Seconds(), "s-until-ready")
		b.ReportMetric(resident(b, h.Pid()), "MiB-resident")
		b.ReportMetric((processorTime(b, h.Pid())-used).Seconds()/time.Minute.Seconds()*100, "%-of-a-core")
		h.Kill()
	}
}

// processorTime returns how long a process has used the processors, as the kernel counts it.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("there is no /proc to read it from: ", err)
	}
	// The name of the program, in parentheses, may contain blanks: fields are counted behind it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
