#!/usr/bin/env bash
# Guess: verify of a correctly signed body that is not JSON returns the body, or throws the
#   library's WebhookVerificationError.
# Software: standardwebhooks 1.1.1 (npm), whose sign takes any text.
# Seen: a SyntaxError of JSON.parse, after the signature was found right.
# Why it matters: a handler that answers 400 to whatever verify throws refuses genuine form
#   bodies, and one that catches the library's class alone answers 500.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts standardwebhooks@1.1.1 >/dev/null || exit 2
cat > main.js <<'JS'
const { Webhook, WebhookVerificationError } = require("standardwebhooks");

const webhook = new Webhook("whsec_" + Buffer.alloc(32, 1).toString("base64"));
const body = "order=1&paid=yes";
const now = new Date();
const headers = {
  "webhook-id": "msg_1",
  "webhook-timestamp": String(Math.floor(now / 1000)),
  "webhook-signature": webhook.sign("msg_1", now, body),
};
let thrown;
try {
  webhook.verify(body, headers);
} catch (error) {
  thrown = error;
}
const own = thrown instanceof WebhookVerificationError;
console.log(`standardwebhooks 1.1.1: signed body ${body}: throws ${thrown?.name}, WebhookVerificationError: ${own}`);
process.exit(thrown instanceof SyntaxError && !own ? 0 : 1);
JS
timeout 50 node main.js
