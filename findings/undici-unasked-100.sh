#!/usr/bin/env bash
# Guess: fetch skips a "100 Continue" that it did not ask for, as it skips 102 and 103. RFC 9110,
#   section 15.2, has a client read any 1xx before the final response, also one it did not expect.
# Software: undici 7.16.0 (npm), the library behind Node's fetch.
# Seen: 102 and 103 are skipped; 100 fails the request ("bad response") although 200 follows.
# Why it matters: the receiver has run the event, the sender sees a failure and sends it again.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts undici@7.16.0 >/dev/null || exit 2
cat > main.js <<'JS'
const net = require("node:net");
const http = require("node:http");
const { fetch } = require("undici");

const heads = { 100: "Continue", 102: "Processing", 103: "Early Hints" };
const viaFetch = (url) => fetch(url, { method: "POST", body: "{}" }).then((r) => r.status, (e) => e.cause.message);
const viaNode = (url) => new Promise((done) =>
  http.request(url, { method: "POST" }, (r) => done(r.statusCode)).on("error", (e) => done(e.message)).end("{}"));

(async () => {
  const seen = {};
  for (const [code, reason] of Object.entries(heads)) {
    const server = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end(`HTTP/1.1 ${code} ${reason}\r\n\r\n` +
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"));
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${server.address().port}/hook`;
    seen[code] = await viaFetch(url);
    console.log(`undici 7.16.0: ${code} before 200: fetch: ${seen[code]}; ` +
      `http.request of Node ${process.version}: ${await viaNode(url)}`);
    server.close();
  }
  process.exit(seen[100] === "bad response" && seen[102] === 200 && seen[103] === 200 ? 0 : 1);
})();
JS
timeout 50 node main.js
