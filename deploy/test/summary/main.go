// Command summary reads what `go test -json` says and prints what a person needs of it: a line for
// each package, the whole output of what failed, what was skipped and why, and at the very end the
// names of what failed. Its exit code is 1 when something failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
	// ImportPath names what a build-output is about.
	ImportPath string
}

// reader keeps the output of each test until it is known how it ended.
type reader struct {
	out     io.Writer
	output  map[string][]string
	skipped []string
	failed  []string
}

func main() {
	r := &reader{out: os.Stdout, output: map[string][]string{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(r.failed) > 0 {
		os.Exit(1)
	}
}

func (r *reader) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(r.out, lines.Text()) // what go itself says
			continue
		}
		r.take(&e)
	}
	if len(r.skipped) == 0 {
		fmt.Fprintln(r.out, "nothing was skipped")
	} else {
		fmt.Fprintln(r.out, "skipped:")
		for _, s := range r.skipped {
			fmt.Fprintln(r.out, "  "+s)
		}
	}
	for _, f := range r.failed { // a log that is cut is cut at its beginning
		fmt.Fprintln(r.out, "FAILED: "+f)
	}
	return lines.Err()
}

func (r *reader) take(e *event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if text := strings.TrimSpace(e.Output); text != "" && !strings.HasPrefix(text, "=== ") &&
			!strings.HasPrefix(text, "--- ") {
			r.output[key] = append(r.output[key], strings.TrimRight(e.Output, "\n"))
		}
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.failed = append(r.failed, e.ImportPath+": it does not build")
	case "skip":
		if e.Test == "" {
			return // a package without tests
		}
		r.skipped = append(r.skipped, strings.TrimPrefix(e.Package, "hooklock/deploy/")+" "+e.Test+": "+
			strings.TrimSpace(strings.Join(r.output[key], " ")))
	case "fail":
		r.failed = append(r.failed, key)
		fmt.Fprintf(r.out, "FAIL %s (%.1fs)\n", key, e.Elapsed)
		for _, line := range r.output[key] {
			fmt.Fprintln(r.out, line)
		}
	case "pass":
		if e.Test == "" {
			fmt.Fprintf(r.out, "ok   %s (%.1fs)\n", e.Package, e.Elapsed)
		}
	}
}
