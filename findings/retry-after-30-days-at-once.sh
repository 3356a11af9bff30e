#!/usr/bin/env bash
# Guess: a Retry-After of 30 days is waited for, or ends the tries: nobody sends again at once what was
#   asked to come in a month.
# Software: axios-retry 4.5.0 with axios 1.21.1, got 14.6.6 (npm), Node 20; ky 1.14.3 to compare.
# Seen: above 24.8 days (2^31 ms) the timer of Node runs out at once, with a warning on stderr: axios-retry
#   and got send all their tries within milliseconds, and fail. With a day they wait. ky waits.
# Why it matters: a receiver that closes a route for a month, or says when a quota is new, gets the load
#   at once, and the event is lost although its sender follows Retry-After.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts axios-retry@4.5.0 axios@1.21.1 got@14.6.6 ky@1.14.3 >/dev/null || exit 2
cat > main.mjs <<'JS'
import http from "node:http";
import axios from "axios";
import retry from "axios-retry";
import got from "got";
import ky from "ky";

const senders = {
  "axios-retry": (url) => {
    const client = axios.create();
    retry(client, { retries: 3, retryDelay: retry.exponentialDelay, retryCondition: (error) => error.response?.status === 503 });
    return client.post(url, {});
  },
  "got": (url) => got.put(url, { json: {} }),
  "ky": (url) => ky.put(url, { json: {}, timeout: false }),
};

// tries is how often an event is sent within two seconds, when each try is answered 503.
const tries = async (send, seconds) => {
  let came = 0;
  const server = http.createServer((req, res) => {
    came++;
    req.resume().on("end", () => res.writeHead(503, { "retry-after": seconds }).end());
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const waits = new Promise((over) => setTimeout(over, 2000, "waits"));
  const result = await Promise.race([waits, send(`http://127.0.0.1:${server.address().port}/hook`).catch(() => "failed")]);
  server.close();
  return `${came} sent, ${result}`;
};

const want = { "axios-retry": "4 sent, failed", "got": "3 sent, failed", "ky": "1 sent, waits" };
let same = true;
for (const [name, send] of Object.entries(senders)) {
  const day = await tries(send, 86400);
  const month = await tries(send, 30 * 86400);
  console.log(`${name}: Retry-After of a day: ${day}; of 30 days: ${month}`);
  same = same && day === "1 sent, waits" && month === want[name];
}
process.exit(same ? 0 : 1);
JS
timeout 50 node main.mjs 2>/dev/null
