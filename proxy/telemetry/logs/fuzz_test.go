package logs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Whatever the place does, each line is written once and in its order or counted, the count stands
// where the lines are missing, and reserved ones are there.
func FuzzEachLineIsWrittenOrCounted(f *testing.F) {
	f.Add([]byte{1, 1, 200, 5, 9, 17, 0, 255, 255, 3}, []byte{255, 255, 3, 255, 0, 255})
	f.Add([]byte{255, 0, 255, 0, 255}, []byte{1, 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, lines, takes []byte) {
		var out bytes.Buffer
		call := 0
		to := writerFunc(func(b []byte) (int, error) {
			call++
			if call <= len(takes) && takes[call-1] < 255 { // takes so many bytes and fails
				n := min(len(b), int(takes[call-1]))
				if n < len(b) && b[n] == '\n' {
					n = max(n-1, 0) // a line that lacks its end alone could not be told from a whole one below
				}
				n, _ = out.Write(b[:n])
				return n, errors.New("full")
			}
			return out.Write(b)
		})
		w := NewWriter(Options{To: to, Room: 400, Reserved: 3, Retry: time.Microsecond, Linger: time.Microsecond,
			Lost: func(n int64) []byte {
				return fmt.Appendf(nil, "(lost %d)\n", n)
			}})
		promised := map[int]bool{}
		for i, length := range lines {
			line := fmt.Sprintf("<%d %s>", i, strings.Repeat("x", int(length)))
			if length%4 == 0 {
				if r, err := w.Reserve(); err == nil {
					promised[i] = true
					say(r, line)
					continue
				}
			}
			say(w, line)
		}
		awaitIdle(w)
		if w.size != 0 {
			t.Errorf("nothing waits, and takes %d bytes", w.size)
		}
		closed(t, w)
		lost, last, written := 0, -1, 0
		for line := range strings.Lines(out.String()) {
			var n int
			if _, err := fmt.Sscanf(line, "(lost %d)\n", &n); err == nil {
				lost += n
				continue
			}
			if !strings.HasPrefix(line, "<") || !strings.HasSuffix(line, ">\n") {
				continue // torn, and counted or written again
			}
			if _, err := fmt.Sscanf(line, "<%d ", &n); err != nil || n <= last {
				t.Fatalf("%q after line %d", line, last)
			}
			if strings.Count(line, "x") != int(lines[n]) {
				t.Fatalf("line %d is %q", n, line)
			}
			last = n
			written++
			delete(promised, n)
		}
		if w.Lost() != int64(lost) || written+lost != len(lines) {
			t.Errorf("%d lines: %d written, %d counted, %d said to be missing", len(lines), written, w.Lost(), lost)
		}
		if len(promised) > 0 {
			t.Errorf("reserved and not written: %v", promised)
		}
	})
}

// awaitIdle waits until everything that was handed over has been written.
func awaitIdle(w *Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 || w.missing > 0 || w.done < w.taken || w.failed != nil {
		w.written.Wait()
	}
}
