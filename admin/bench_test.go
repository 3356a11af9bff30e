package admin

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

// BenchmarkGuard is the check before a step, without one: over HTTP, of the ledger alone, and
// beside a bare linearizable get.
func BenchmarkGuard(b *testing.B) {
	f := newFleet(b, nil)
	d := f.run("w", "1")
	by := idem.Callback{Execution: idem.ExecutionID(d.id), Token: d.token, Key: callbackKey}
	body := bodyOf(d, "")
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"get", func() error { _, err := f.etcd.Client.Get(b.Context(), "/hooklock/v1/locks/w"); return err }},
		{"ledger", func() error { _, err := f.second.Guard(b.Context(), by, "", nil); return err }},
		{"http", func() error {
			q, err := http.NewRequestWithContext(b.Context(), http.MethodPost, f.http.URL+"/v1/executions/"+d.id+
				"/guard", strings.NewReader(body))
			if err != nil {
				return err
			}
			q.Header.Set("Authorization", "Bearer "+callbackKey)
			a, err := f.http.Client().Do(q)
			if err != nil {
				return err
			}
			defer a.Body.Close()
			_, err = io.Copy(io.Discard, a.Body)
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := c.do(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		})
	}
}
