package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hooklock/cmd/hooklock/cli"
)

// observed are deliveries of a sender that counts its attempts in the body: 100 events, of which
// each fourth failed first.
func observed(yield func(i int, at time.Time, status int, body string)) {
	at := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	for event := range 100 {
		for n := range 1 + (event%4)/3 {
			at = at.Add(40 * time.Second)
			status := 200
			if event%4 == 3 && n == 0 {
				status = 503
			}
			yield(event*2+n, at, status, fmt.Sprintf(`{"event_id":"e%d","customer_id":"c%d","attempt":%d,"total":%d}`,
				event*7919, event%9, n+1, event))
		}
	}
}

func TestObserveReadsWhatOthersRecorded(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "recorded")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	var entries []any
	write := func(name, text string, at time.Time) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	observed(func(i int, at time.Time, status int, body string) {
		write(filepath.Join(folder, fmt.Sprintf("%03d.http", i)),
			"POST /hooks/shop?v=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\r\n"+body, at)
		line, _ := json.Marshal(map[string]any{"time_iso8601": at.Format(time.RFC3339), "request_method": "POST",
			"request_uri": "/hooks/shop?v=1", "status": fmt.Sprint(status), "request_time": "0.2",
			"request_body": body, "content_type": "application/json", "http_x_tenant": "t"})
		fmt.Fprintf(&lines, "%s\n", line)
		entries = append(entries, map[string]any{"startedDateTime": at, "time": 200,
			"request": map[string]any{"method": "POST", "url": "https://a.example/hooks/shop?v=1",
				"headers":  []any{map[string]string{"name": "Content-Type", "value": "application/json"}},
				"postData": map[string]string{"text": body}}, "response": map[string]int{"status": status}})
	})
	archive, _ := json.Marshal(map[string]any{"log": map[string]any{"entries": entries}})
	write(filepath.Join(dir, "hooks.har"), string(archive), time.Now())
	write(filepath.Join(dir, "access.jsonl"), lines.String(), time.Now())
	for _, name := range []string{"recorded", "hooks.har", "access.jsonl"} {
		code, out, problems := command(t, nil, "observe", filepath.Join(dir, name))
		if code != cli.ExitFine {
			t.Fatalf("%s: %d %s", name, code, problems)
		}
		for _, want := range []string{"path: '/hooks/shop'", "event_id: '{body.event_id}'",
			"workflow: 'shop/{body.customer_id}'", "ignore: ['body.attempt']",
			"they are 100 events. Where the first delivery of each succeeds, it runs once, 25 repeats get " +
				"the first answer, and 0 would be refused"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %s in\n%s", name, want, out)
			}
		}
		file := filepath.Join(dir, "routes.yaml")
		write(file, out, time.Now())
		if code, said, problems := command(t, nil, "validate", "--config", file); code != cli.ExitFine ||
			strings.Contains(said+problems, "warning") {
			t.Errorf("%s: the routes are not valid: %d %s %s", name, code, said, problems)
		}
		code, explained, problems := command(t, nil, "explain", "--all-routes", "--config", file, folder)
		events := map[string]bool{}
		for line := range strings.SplitSeq(explained, "\n") {
			if fields := strings.Fields(line); len(fields) >= 4 && fields[1] == "shop" {
				events[fields[3]] = true
			}
		}
		if code != cli.ExitFine || len(events) != 100 {
			t.Errorf("%s: predicted 100 events, and the routes make %d: %+v\n%.400s", name, len(events), problems,
				explained)
		}
	}
	if code, _, problems := command(t, nil, "observe", filepath.Join(dir, "none.har")); code != cli.ExitUsage ||
		!strings.Contains(problems, "none.har") {
		t.Errorf("%d %s", code, problems)
	}
}
