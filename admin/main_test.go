package admin

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(covering{m}) }

// covering also fails when openapi.json describes what no test has met.
type covering struct{ m *testing.M }

func (c covering) Run() int {
	code := c.m.Run()
	if run := flag.Lookup("test.run"); code != 0 || run.Value.String() != "" ||
		flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	for _, missing := range unmet() {
		fmt.Fprintln(os.Stderr, "openapi.json describes what no test has met: "+missing)
		code = 1
	}
	return code
}

// rare are answers that only a fault or a flood brings; each has a test of its own that needs no
// ledger.
var rare = []string{"429", "500", "503", "421", "405"}

// unmet lists what openapi.json describes and no answer had: answers, and members of named schemas.
func unmet() (missing []string) {
	d := document()
	for _, e := range allEndpoints() {
		responses, _ := d.operation(e.method, e.path)["responses"].(map[string]any)
		for status := range responses {
			if name := e.method + " " + e.path + " -> " + status; !met.has(name) && !slices.Contains(rare, status) {
				missing = append(missing, name)
			}
		}
	}
	for name, schema := range d.at("#/components/schemas") {
		properties, _ := schema.(map[string]any)["properties"].(map[string]any)
		if name == "FinalResponse" { // of requests alone
			continue
		}
		for property := range properties {
			inside := map[string]string{"CancelledExecution": "Execution", "AcquiredLock": "Lock"}[name]
			if at := name + "." + property; !met.has(at) && !met.has(inside+"."+property) {
				missing = append(missing, at)
			}
		}
	}
	for _, k := range problemKinds() {
		if !met.has("code " + k.code) {
			missing = append(missing, "code "+k.code)
		}
	}
	slices.Sort(missing)
	return missing
}
