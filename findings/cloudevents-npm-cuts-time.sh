#!/usr/bin/env bash
# Guess: an event keeps the time that its source gave it.
# Software: cloudevents 10.0.0 (npm).
# Seen: microseconds are cut off, without a word, where an event is sent and where it is received, in
#   both modes, and the offset is dropped: 09:00:00.123456+02:00 becomes 07:00:00.123Z.
# Why it matters: two changes of one object in the same millisecond have the same time, so that a
#   receiver that keeps the newer of two by their time keeps either; and a forwarder in Node sends on
#   events that differ from those that came, so that a signature or a hash over them does.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts cloudevents@10.0.0 >/dev/null || exit 2
cat > main.js <<'JS'
const { CloudEvent, HTTP } = require("cloudevents");

const event = { specversion: "1.0", id: "1", type: "order", source: "/shop", time: "2026-11-29T09:00:00.123456+02:00" };
const headers = Object.fromEntries(Object.entries(event).map(([name, value]) => [`ce-${name}`, value]));
const json = { "content-type": "application/cloudevents+json" };
const seen = {
  "sent in binary mode": HTTP.binary(new CloudEvent(event)).headers["ce-time"],
  "sent in structured mode": JSON.parse(HTTP.structured(new CloudEvent(event)).body).time,
  "received in binary mode": HTTP.toEvent({ headers, body: "" }).time,
  "received in structured mode": HTTP.toEvent({ headers: json, body: JSON.stringify(event) }).time,
};
for (const [what, time] of Object.entries(seen)) console.log(`cloudevents 10.0.0: ${event.time}, ${what}: ${time}`);
process.exit(Object.values(seen).every((time) => time === "2026-11-29T07:00:00.123Z") ? 0 : 1);
JS
timeout 50 node main.js
