#!/usr/bin/env bash
# Guess: smee-client delivers what the sender posted: the same bytes, with the headers that came.
# Software: smee-client 5.0.0 (npm), against an event stream as smee.io sends one.
# Seen: it parses the body and writes it anew: 9007199254740993 becomes 9007199254740992, 1.0 becomes 1,
#   blanks go. The signature header arrives as it came.
# Why it matters: a handler that is developed behind it sees another ID than in production, and its
#   signature check fails for each body that is not as JSON.stringify would write it; whoever then
#   checks JSON.stringify(body) finds his check right for GitHub, and wrong for those who write 1.0.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts smee-client@5.0.0 >/dev/null || exit 2
cat > main.mjs <<'JS'
import http from "node:http";
import SmeeClient from "smee-client";

const body = '{"id": 9007199254740993, "amount": 1.0}';
const listening = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));

const receiver = http.createServer((req, res) => {
  let got = "";
  req.on("data", (bytes) => { got += bytes; }).on("end", () => {
    res.end();
    console.log(`smee-client 5.0.0: ${body} arrives as ${got}, x-hub-signature-256: ${req.headers["x-hub-signature-256"]}`);
    process.exit(got === '{"id":9007199254740992,"amount":1}' && req.headers["x-hub-signature-256"] === "sha256=00" ? 0 : 1);
  });
});
const stream = http.createServer((_, res) => {
  res.writeHead(200, { "content-type": "text/event-stream" });
  res.write("event: ready\ndata: {}\n\n");
  res.write(`data: {"content-type":"application/json","x-hub-signature-256":"sha256=00","body":${body},"query":{},"timestamp":1}\n\n`);
});
const logger = { info() {}, error: console.error };
await new SmeeClient({ source: `http://127.0.0.1:${await listening(stream)}/channel`,
  target: `http://127.0.0.1:${await listening(receiver)}/hook`, logger }).start();
JS
timeout 50 node main.mjs
