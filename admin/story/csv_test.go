package story

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

func TestACellDoesNotEndAtASemicolon(t *testing.T) {
	var text bytes.Buffer
	err := WriteCSV(&text, []string{"a;=1+2", "b\t=1", `c"d`, "e,f", " g", "h", "=1"})
	if want := `"a;=1+2","b` + "\t" + `=1","c""d","e,f"," g",h,'=1` + "\n"; err != nil || text.String() != want {
		t.Errorf("%q, want %q", text.String(), want)
	}
}

func TestAnEventForASpreadsheetHasWhatItsSenderGot(t *testing.T) {
	for want, x := range map[string]client.Execution{
		"200":      {Status: client.Success, Response: &client.Response{Status: 200}},
		"409":      {Status: client.Refused, Arrivals: refusal(idem.DecisionLocked, 409)},
		"502":      {Status: client.Failed, Error: &client.Failure{Code: string(idem.DecisionUpstreamFailed)}},
		"accepted": {Status: client.Failed, Response: &client.Response{Status: 500}, ParkedOn: "locked"},
		"":         {Status: client.Running},
	} {
		x.Labels = map[string]string{"order": "1042", "shop": "acme"}
		row := CSVRow(&x, ended.Time)
		if len(row) != len(CSVHead()) || row[7] != want ||
			!strings.Contains(strings.Join(row, ","), "order=1042 shop=acme") {
			t.Errorf("%q: %q", want, row)
		}
	}
}

func TestABlockedEventIsNotRunningInASpreadsheet(t *testing.T) {
	x := client.Execution{Status: client.Running, Parked: &client.Parked{Blocked: "failed"}}
	if row := CSVRow(&x, ended.Time); row[4] != "BLOCKED" {
		t.Errorf("%q", row)
	}
}

// An event that never ran took what its newest delivery took.
func TestARefusedEventTookWhatItsSenderWaited(t *testing.T) {
	answered := client.Time{Time: began.Add(1250 * time.Millisecond)}
	for want, x := range map[string]client.Execution{
		"2.5": {Status: client.Failed, StartedAt: began,
			FinishedAt: client.Time{Time: began.Add(2500 * time.Millisecond)}},
		"1.25": {Status: client.Refused, StartedAt: began, Arrivals: &client.Arrivals{
			Newest: []client.Arrival{{At: began, AnsweredAt: answered}}}},
		"": {Status: client.Refused, Arrivals: refusal(idem.DecisionLocked, 409)}, // of an older release
	} {
		got := ""
		if took, known := Took(&x); known {
			got = strconv.FormatFloat(took.Seconds(), 'f', -1, 64)
		}
		if csv := strings.TrimRight(strings.TrimRight(CSVRow(&x, ended.Time)[8], "0"), "."); got != want ||
			csv != want {
			t.Errorf("%q and %q, want %q", got, csv, want)
		}
	}
}
