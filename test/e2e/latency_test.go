package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// The command and the page show them, also after a restart.
func TestLatencyAndOutcomesOfARouteAreShownOverTime(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	config := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\ndata_dir: %q\nupstream: %s\n"+
		"routes: [{name: timed, path: \"/timed/{w}\", workflow: \"timed/{path.w}\"}]\n", t.TempDir(), up.URL)
	h := own(t, config)
	for n := range 3 {
		if a := testkit.Post(t, h.Addr, "/timed/w", "{}", key(fmt.Sprint(n))); a.Status != 200 {
			t.Fatalf("got %d", a.Status)
		}
	}
	if fault := stopped(t, h.Process); fault != "" {
		t.Fatal(fault)
	}
	again := own(t, config)
	list := cli(t, again, "counts", "--since", "1h", "--step", "1h", "-o", "csv")
	row := regexp.MustCompile(`(?m)^\S+,timed,(\d+),(\d+),0,0,0,0,0,0,0,0\.\d+,0\.\d+\r?$`).FindAllStringSubmatch(list, -1)
	if len(row) == 0 || len(row) == 1 && row[0][2] != "3" { // two if an hour ended between
		t.Errorf("the list is\n%s", list)
	}
	if got := cli(t, again, "counts", "--until", "30m", "--since", "1h"); !strings.Contains(got,
		"nothing was counted") {
		t.Errorf("before that: %s", got)
	}
	page := testkit.Exchange(t, again.Admin, "GET /page/latency?route=timed&range=7d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if text := string(page.Body); !strings.Contains(text, `<path class="p95" d="M`) || !strings.Contains(text, "p95 a week before") {
		t.Errorf("the page says %s", text)
	}
}
