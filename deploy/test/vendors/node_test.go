package vendors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// received is what the vendors' Node packages make of deliveries, in their order.
func received(t *testing.T, deliveries []map[string]any) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("npm/node_modules"); err != nil {
		t.Skip("deploy/test/vendors/npm/node_modules is not there: run npm install --ignore-scripts in that folder")
	}
	var lines bytes.Buffer
	for _, d := range deliveries {
		if err := json.NewEncoder(&lines).Encode(d); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(node, "receive.mjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = "npm", &lines, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []string
	for line := range strings.Lines(string(out)) { // the packages write lines of their own
		if answer, ok := strings.CutPrefix(line, "> "); ok {
			answers = append(answers, strings.TrimSpace(answer))
		}
	}
	if len(answers) != len(deliveries) {
		t.Fatalf("%d answers to %d deliveries:\n%s", len(answers), len(deliveries), out)
	}
	return answers
}

func (d *delivery) forNode(preset, receiver string) map[string]any {
	headers := map[string]string{}
	for name, values := range d.header {
		headers[strings.ToLower(name)] = values[0]
	}
	return map[string]any{"preset": preset, "url": d.url, "headers": headers, "body": d.body, "receiver": receiver}
}

func TestNodePackagesOfVendorsTakeTheSamplesOfTheirDeliveries(t *testing.T) {
	presets := []string{
		"github", "shopify", "sns", "hubspot", "square", "linear", "discord", "adyen", "paddle", "workos", "line",
		"razorpay", "coinbase-commerce", "box", "notion",
		"openai", "polar", "clerk", "resend", "plaid", "netlify",
	}
	kinds := map[string]string{"openai": "standard-webhooks", "clerk": "standard-webhooks",
		"resend": "standard-webhooks", "plaid": "sendgrid"} // of secrets
	libraries := map[string]string{"clerk": "svix", "resend": "svix"}
	var all []map[string]any
	for _, preset := range presets {
		keys := secretsOf(t, cmp.Or(kinds[preset], preset))
		d := sampleOf(t, preset, keys.signer)
		other := d.tampered(preset)
		if bytes.Equal(other.body, d.body) {
			t.Fatalf("%s: nothing was changed in %s", preset, d.body)
		}
		all = append(all, d.forNode(cmp.Or(libraries[preset], preset), keys.receiver),
			other.forNode(cmp.Or(libraries[preset], preset), keys.receiver))
	}
	answers := received(t, all)
	for i, preset := range presets {
		t.Run(preset, func(t *testing.T) {
			first, other := answers[2*i], answers[2*i+1]
			if strings.HasPrefix(first, "missing") {
				t.Skip(first)
			}
			if first != "ok" {
				t.Errorf("%s\n%s", first, fmt.Sprint(all[2*i]))
			}
			if !strings.HasPrefix(other, "refused") {
				t.Errorf("a changed delivery: %s", other)
			}
		})
	}
}
