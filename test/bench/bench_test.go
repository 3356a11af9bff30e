//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// TestMain is also the program whose parts a run starts: it starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-as" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestMeasuresInOneRunAndLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	err := run(t.Context(), []string{"-hooklock", "", "-nginx", "", "-rounds", "2", "-duration", "50ms", "-connections",
		"2"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`upstream alone +[1-9]`, `net/http ReverseProxy +[1-9]`,
		`plain fasthttp proxy +[1-9]`, `the same without a body`} {
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("found no line like %q in\n%s", line, out.String())
		}
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("files were left: %v, %v", left, err)
	}
}

func TestAProxyThatDoesNotStartEndsTheRunWithItsWords(t *testing.T) {
	program := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho 'port is taken' >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-hooklock", program, "-nginx", ""}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "port is taken") {
		t.Errorf("got %v", err)
	}
}

func TestAMissingPeerIsNamedAndTheOthersAreMeasured(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	var out bytes.Buffer
	err := run(t.Context(), []string{"-peers", filepath.Join(t.TempDir(), "peers"), "-hooklock", "", "-rounds", "1",
		"-duration", "50ms"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range castPeers {
		if !strings.Contains(out.String(), "left out: "+c.name+": ") {
			t.Errorf("%s is not named in\n%s", c.name, out.String())
		}
	}
}

func TestAWorkflowOfManyIsOneConnectionsAlone(t *testing.T) {
	owner := map[string]int{}
	for index := range 7 {
		s := &sender{o: loadOptions{kind: kindSpread, path: defaultPath, run: "1", connections: 7, workflows: 100},
			index: index}
		for n := range 40 {
			workflow, _, _ := strings.Cut(string(s.request(n)), " HTTP/")
			if other, taken := owner[workflow]; taken && other != index {
				t.Fatalf("%s is of connections %d and %d", workflow, other, index)
			}
			owner[workflow] = index
		}
	}
	if len(owner) < 90 {
		t.Errorf("%d workflows of 100 were used", len(owner))
	}
}

func TestUnknownOrEmptyArgumentsAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-connections", "0"}, {"-duration", "0s"}, {"-flows", "0"},
		{"-outages", "-1"}, {"-as", "cook"}, {"-remembered", "999"}, {"-remembered", "many"}, {"-only", "("},
		{"-only", "nobody", "-hooklock", "", "-nginx", ""}, {"x"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

func TestCountsTheCPUOfAGroup(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; read x")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // our own group has others in it, who come and go
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has counted to its end, and lives
		t.Fatal(err)
	}
	spent, err := groupUsage(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("read at the end of input should have failed")
	}
	if spent.cpu < 20*time.Millisecond {
		t.Errorf("a child's work was not counted: %s", spent.cpu)
	}
}

func TestReadsTheStatOfAProgramWithAnOddName(t *testing.T) {
	got, err := parseStat("4 (a) b) 1 (c) S 1 77 77 0 -1 0 0 0 0 0 150 50 9 1 20 0 1 0 5 1000 3 0")
	if want := (process{pid: 4, parent: 1, group: 77,
		usage: usage{cpu: 2100 * time.Millisecond, rss: 3 * int64(os.Getpagesize())}}); err != nil || got != want {
		t.Errorf("got %+v %v", got, err)
	}
	for _, text := range []string{"", "4 (a", "4 (a) S 1 2",
		"4 (a) S 1 x 77 0 -1 0 0 0 0 0 150 50 9 9 20 0 1 0 5 1000 3 0"} {
		if _, err := parseStat(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	slow := &subject{rounds: []round{{cpu: 10}, {cpu: 100}, {cpu: 4}}}
	fast := &subject{rounds: []round{{cpu: 5}, {cpu: 50}, {cpu: 1}}}
	if got, want := ratio(slow, fast, cpuOf), (span{2, 2, 4}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := spanOf([]float64{4, 1, 3, 2}).text(1), "2.5 (1.0–4.0)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEveryKindOfRequestIsOneThatServersRead(t *testing.T) {
	var seen []string
	for _, kind := range []string{kindPlain, kindBodiless, kindReplayed, kindLocked, kindExecuted, kindInTime,
		kindParked} {
		size := bodySize
		switch kind {
		case kindParked:
			size = parkedSize
		case kindBodiless:
			size = 0
		}
		s := &sender{o: loadOptions{kind: kind, run: "1"}, index: 3}
		for n := range 2 {
			var r fasthttp.Request
			if err := r.Read(bufio.NewReader(bytes.NewReader(s.request(n)))); err != nil {
				t.Fatal(err)
			}
			if len(r.Body()) != size {
				t.Errorf("%s: a body of %d bytes", kind, len(r.Body()))
			}
			seen = append(seen, fmt.Sprintf("%s %s", r.URI().Path(), r.Header.Peek("Idempotency-Key")))
		}
	}
	want := []string{
		"/plain evt_fixed", "/plain evt_fixed", "/plain ", "/plain ",
		"/hooks/settled evt_1_settled", "/hooks/settled evt_1_settled",
		"/hooks/held evt_1_3_0", "/hooks/held evt_1_3_1",
		"/hooks/flow-3 evt_1_3_0", "/hooks/flow-3 evt_1_3_1",
		"/parks/flow-3 evt_1_3_0", "/parks/flow-3 evt_1_3_1",
		"/accepts/flow-3 evt_1_3_0", "/accepts/flow-3 evt_1_3_1",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q\nwant %q", seen, want)
	}
}

func TestAnAnswerOfAnotherKindIsWrong(t *testing.T) {
	for _, c := range []struct {
		kind, decision string
		status         int
		right          bool
	}{
		{kindPlain, "", 200, true}, {kindPlain, "", 502, false}, {kindBodiless, "", 200, true},
		{kindReplayed, "replayed", 200, true}, {kindReplayed, "executed", 200, false},
		{kindLocked, "locked", 409, true}, {kindLocked, "in_flight", 409, false}, {kindExecuted, "executed", 200, true},
		{kindInTime, "executed", 200, true}, {kindSpread, "executed", 200, true}, {kindSpread, "replayed", 200, false},
		{kindHot, "", 200, true}, {kindCopies, "replayed", 200, true}, {kindCopies, "executed", 200, false},
		{kindAlone, "executed", 200, true}, {kindAlone, "", 200, false}, {kindInTime, "parked", 202, false},
		{kindParked, "parked", 202, true}, {kindParked, "executed", 200, false},
	} {
		var r fasthttp.Response
		r.SetStatusCode(c.status)
		if c.decision != "" {
			r.Header.Set("Hooklock-Decision", c.decision)
		}
		s := &sender{o: loadOptions{kind: c.kind}}
		if err := s.check(&r); (err == nil) != c.right {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestAnOutagesEventOutOfOrderIsWrong(t *testing.T) {
	var s service
	s.expect("1", 3)
	s.note("a", outageEvent("1", "a", 0))
	s.note("b", outageEvent("1", "b", 0))
	if s.wrong != nil || s.over() {
		t.Errorf("got %v, over: %t", s.wrong, s.over())
	}
	s.note("a", outageEvent("1", "a", 2))
	if s.wrong == nil || !s.over() {
		t.Errorf("got %v, over: %t", s.wrong, s.over())
	}
}
