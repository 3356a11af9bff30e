#!/usr/bin/env bash
# Guess: ConstructEvent of stripe-go returns each event that is rightly signed and not too old; what has changed
#   between the versions of the API shows in the fields.
# Software: github.com/stripe/stripe-go/v82 v82.5.1; stripe 23.1.0 (npm) to compare.
# Seen: an event of another api_version than the one that the library was made for is an error, behind a right
#   signature. stripe of npm returns it. (ConstructEventWithOptions can ignore it.)
# Why it matters: an endpoint keeps the version it was made with, so an update of the library, which compiles
#   and passes its tests, refuses each event from then on: a handler answers 400, as for a forged one.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts stripe@23.1.0 >/dev/null || exit 2
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/stripe/stripe-go/v82"
	"github.com/stripe/stripe-go/v82/webhook"
)

func main() {
	event := func(version string) error {
		signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
			Payload: []byte(`{"id": "evt_1", "object": "event", "api_version": "` + version + `", "type": "charge.succeeded", "data": {"object": {}}}`),
			Secret:  "whsec_test",
		})
		_, err := webhook.ConstructEvent(signed.Payload, signed.Header, signed.Secret)
		return err
	}
	own, other := event(stripe.APIVersion), event("2024-06-20")
	fmt.Printf("stripe-go v82.5.1: an event of %s: %v\nstripe-go v82.5.1: an event of 2024-06-20: %v\n", stripe.APIVersion, own, other)
	if own != nil || other == nil || !strings.Contains(other.Error(), "API version") {
		os.Exit(1)
	}
}
GO
cat > main.js <<'JS'
const Stripe = require("stripe");
const { webhooks } = new (Stripe.default ?? Stripe)("sk_test_1");
const payload = JSON.stringify({ id: "evt_1", object: "event", api_version: "2024-06-20", type: "charge.succeeded", data: { object: {} } });
const event = webhooks.constructEvent(payload, webhooks.generateTestHeaderString({ payload, secret: "whsec_test" }), "whsec_test");
console.log(`stripe 23.1.0 (npm): an event of ${event.api_version}: ${event.id}`);
JS
go get github.com/stripe/stripe-go/v82@v82.5.1 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
timeout 50 node main.js
