package testkit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Output keeps the lines that a process writes, and lets tests wait for one.
type Output struct {
	mu      sync.Mutex
	changed *sync.Cond
	lines   []string
	records []Record // of the first lines, as far as somebody has asked; nil = the line is none
	partial []byte
}

func newOutput() *Output {
	o := &Output{}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = append(o.partial, p...)
	for {
		line, rest, whole := bytes.Cut(o.partial, []byte("\n"))
		if !whole {
			break
		}
		o.lines = append(o.lines, string(line))
		o.partial = rest
	}
	o.changed.Broadcast()
	return len(p), nil
}

// Lines are the whole lines so far.
func (o *Output) Lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lines)
}

// String is everything so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b bytes.Buffer
	for _, line := range o.lines {
		b.WriteString(line + "\n")
	}
	b.Write(o.partial)
	return b.String()
}

// find waits until a line matches, or gives up when over says so, or after Patience.
func (o *Output) find(match func(string) bool, over func() bool) (line string, ok bool) {
	late := false
	stop := time.AfterFunc(Patience, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		late = true
		o.changed.Broadcast()
	})
	defer stop.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for seen := 0; ; {
		for ; seen < len(o.lines); seen++ {
			if match(o.lines[seen]) {
				return o.lines[seen], true
			}
		}
		if late || over() {
			return "", false
		}
		o.changed.Wait()
	}
}

// Await waits for a line that matches, from the first line on.
func (o *Output) Await(tb testing.TB, what string, match func(line string) bool) string {
	tb.Helper()
	line, ok := o.find(match, func() bool { return false })
	if !ok {
		tb.Fatalf("no line with %s in:\n%s", what, o)
	}
	return line
}

// Record is one JSON line of a log.
type Record map[string]any

// Text is a field as text, empty where it is missing or no text.
func (r Record) Text(name string) string {
	s, _ := r[name].(string)
	return s
}

// Number is a field as a number, 0 where it is missing or no number.
func (r Record) Number(name string) float64 {
	n, _ := r[name].(float64)
	return n
}

// Records are the lines so far that are JSON objects. They are shared: change none.
func (o *Output) Records() []Record {
	o.mu.Lock()
	defer o.mu.Unlock()
	// each once: tests ask again and again, some of them of a log of megabytes
	for _, line := range o.lines[len(o.records):] {
		o.records = append(o.records, record(line))
	}
	return slices.DeleteFunc(slices.Clone(o.records), func(r Record) bool { return r == nil })
}

// AwaitRecord waits for a log line with this msg that matches; a nil match takes any.
func (o *Output) AwaitRecord(tb testing.TB, msg string, match func(Record) bool) Record {
	tb.Helper()
	return record(o.Await(tb, "msg "+msg+" as wanted", func(line string) bool {
		if !strings.Contains(line, msg) {
			return false
		}
		r := record(line)
		return r.Text("msg") == msg && (match == nil || match(r))
	}))
}

func record(line string) Record {
	var r Record
	if json.Unmarshal([]byte(line), &r) != nil {
		return nil
	}
	return r
}
