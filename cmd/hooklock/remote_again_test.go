package main

import (
	"strings"
	"testing"
)

const signedRoutes = `200 {"routes":[{"route":"orders","mode":"enforce","path":"/o","answers":[],"signatureAge":300},` +
	`{"route":"plain","mode":"enforce","path":"/p","answers":[]}]}`

func TestAnEventThatRunsAgainIsSaidToHaveAnOldSignature(t *testing.T) {
	const id = "exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra"
	for route, warns := range map[string]bool{"orders": true, "plain": false} {
		was := `{"executionId":"` + id + `","status":"SUCCESS","workflow":"w","route":"` + route + `"}`
		api := serveAPI(t, map[string]string{
			"GET /v1/executions/" + id: "200 " + was, "GET /v1/routes": signedRoutes,
			"POST /v1/executions/" + id + "/rerun": "201 " +
				`{"executionId":"exec_next","status":"PENDING","workflow":"w","route":"orders","attempt":2}`,
		})
		code, out, errs := command(t, nil, "rerun", id, "--again", "--reason", "it was wrong", "--admin", api.url)
		if code != 0 || !strings.Contains(out, "exec_next") ||
			!strings.HasSuffix(api.last(), `"again":true,"reason":"it was wrong"}`) {
			t.Fatalf("%d %q %q; %s", code, out, errs, api.last())
		}
		if strings.Contains(errs, "park.signature: renew") != warns {
			t.Errorf("route %s: %q", route, errs)
		}
	}
}

func TestADryRunOfEventsThatRunAgainNamesTheFirst(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/routes": signedRoutes,
		"POST /v1/jobs": `200 {"kind":"rerun","state":"dry_run","matched":4711,"failures":[],"first":[` +
			`{"executionId":"exec_one","workflow":"orders/acme","route":"orders","since":"2026-11-28T12:00:00.000Z"}]}`,
	})
	code, out, errs := command(t, nil, "executions", "rerun", "--again", "--route", "orders", "--status", "SUCCESS",
		"--dry-run", "--admin",
		api.url)
	if code != 0 || !strings.Contains(out, "exec_one") ||
		!strings.Contains(errs, "4711 match, of which the first 1 are shown") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if last := api.last(); !strings.Contains(last, `"again":true`) || !strings.Contains(last, `"status":"SUCCESS"`) ||
		!strings.Contains(last, `"dryRun":true`) {
		t.Error(last)
	}
}

func TestFlagsThatDoNotGoTogetherWithAgainAreRefused(t *testing.T) {
	api := serveAPI(t, nil)
	for _, args := range [][]string{
		{"--again", "--dead-letters"}, {"--status", "SUCCESS"}, {"--again", "--status", ""},
	} {
		if code, _, errs := command(t, nil, append([]string{"executions", "rerun", "--reason", "r", "--admin", api.url},
			args...)...); code != 2 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}
