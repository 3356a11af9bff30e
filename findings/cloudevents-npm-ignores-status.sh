#!/usr/bin/env bash
# Guess: the emitter of the npm package cloudevents rejects when the sink answers 500 or 409.
# Software: cloudevents 10.0.0 (npm), httpTransport, which its README sends with.
# Seen: emit resolves with body and headers, whatever the status, which is not among them.
# Why it matters: a sender built on it never learns of a refused event and never sends it again.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts cloudevents@10.0.0 >/dev/null || exit 2
cat > main.js <<'JS'
const http = require("node:http");
const { CloudEvent, emitterFor, httpTransport } = require("cloudevents");

(async () => {
  let same = true;
  for (const status of [500, 409]) {
    const server = http.createServer((req, res) => req.resume().on("end", () => {
      res.writeHead(status, { "Retry-After": "1" });
      res.end("not now");
    }));
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const emit = emitterFor(httpTransport(`http://127.0.0.1:${server.address().port}/`));
    const event = new CloudEvent({ type: "order.paid", source: "/shop", data: { order: 1 } });
    let seen;
    try {
      const answer = await emit(event);
      seen = "resolves with " + Object.keys(answer).join(" and ");
    } catch (error) {
      seen = "rejects: " + error.message;
    }
    console.log(`cloudevents 10.0.0: sink answers ${status}: emit ${seen}`);
    same &&= seen === "resolves with body and headers";
    server.close();
    server.closeAllConnections();
  }
  process.exit(same ? 0 : 1);
})();
JS
timeout 50 node main.js
