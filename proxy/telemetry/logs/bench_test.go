package logs

import (
	"context"
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"
)

// What a line costs whoever has it: written by itself to a pipe that somebody reads, as it was
// before there was a Writer, and handed over.
func BenchmarkLine(b *testing.B) {
	for _, c := range []struct {
		name string
		to   func(b *testing.B, pipe io.Writer) io.Writer
	}{
		{"written", func(_ *testing.B, pipe io.Writer) io.Writer { return pipe }},
		{"handed over", handOver},
	} {
		for _, parallel := range []bool{false, true} {
			name := c.name + "/one after the other"
			if parallel {
				name = c.name + "/side by side"
			}
			b.Run(name, func(b *testing.B) {
				log := slog.New(slog.NewJSONHandler(c.to(b, readPipe(b)), nil))
				b.ReportAllocs()
				before := cpu()
				// of all goroutines, the reader's, too
				defer func() { b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op") }()
				if parallel {
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							delivery(log)
						}
					})
					return
				}
				for b.Loop() {
					delivery(log)
				}
			})
		}
	}
}

// cpu is what this process has used of the processors, in ns.
func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// readPipe is a pipe with a reader, as a process has whose log is shipped.
func readPipe(b *testing.B) io.Writer {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 64<<10))
	}()
	b.Cleanup(func() { _ = w.Close(); <-over; _ = r.Close() })
	return w
}

// delivery is the line of a delivery.
func delivery(log *slog.Logger) {
	log.LogAttrs(context.Background(), slog.LevelInfo, "delivery", slog.String("decision", "executed"),
		slog.String("route", "stripe"),
		slog.Int("status", 200), slog.String("workflow", "stripe/acct_1"), slog.String("key", "0123456789abcdef"),
		slog.String("execution", "exec_abcdefghijklmnopqrstuvwxyz234567"), slog.Int("attempt", 1),
		slog.String("trace_id", "0af7651916cd43dd8448eb211c80319c"), slog.Float64("duration_ms", 12.345),
		slog.Float64("upstream_ms", 10.1))
}

func handOver(b *testing.B, to io.Writer) io.Writer {
	b.Helper()
	w := NewWriter(Options{To: to, Lost: func(int64) []byte { return []byte("lost\n") }})
	b.Cleanup(func() {
		b.ReportMetric(float64(w.Lost())/float64(b.N), "lost/op")
		_ = w.Close(context.Background())
	})
	return w
}
