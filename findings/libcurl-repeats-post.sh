#!/usr/bin/env bash
# Guess: curl sends a POST once unless --retry is given.
# Software: curl and libcurl 7.88.1 of Debian 12 (needs Node).
# Seen: if the server closes a kept connection after it has read the whole POST and before it
#   answers, curl sends the POST again on a new connection. On a new connection it does not.
# Why it matters: a receiver that dies after its work gets the event twice at once, from each sender
#   that keeps connections with libcurl (FreeRADIUS's rest, Icecast's URL authentication).
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
version=$(curl --version | sed -n '1s/^curl \([^ ]*\) .*/\1/p')
cat > main.js <<'JS'
const http = require("node:http");
const { spawn } = require("node:child_process");

// count posts the bodies with one curl; the receiver closes the connection in place of its answer
// to the first "cut", and answers all else. It returns how often "cut" came.
const count = (...bodies) => new Promise((done) => {
  let came = 0;
  const receiver = http.createServer((req, res) => {
    let body = "";
    req.on("data", (data) => { body += data; });
    req.on("end", () => {
      if (body === "cut" && ++came === 1) req.socket.destroy();
      else res.end("{}");
    });
  });
  receiver.listen(0, "127.0.0.1", () => {
    const url = `http://127.0.0.1:${receiver.address().port}/`;
    const args = bodies.flatMap((body) => ["-s", "-d", body, url, "--next"]).slice(0, -1);
    spawn("curl", args).on("close", () => { receiver.close(); receiver.closeAllConnections(); done(came); });
  });
});

(async () => {
  const [kept, fresh] = [await count("first", "cut"), await count("cut")];
  console.log(`curl ${process.argv[2]}: closed without an answer: sent ${kept} times on a kept connection, ${fresh} on a new one`);
  process.exit(kept === 2 && fresh === 1 ? 0 : 1);
})();
JS
timeout 50 node main.js "$version"
