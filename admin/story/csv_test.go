package story

import (
	"bytes"
	"strings"
	"testing"

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
