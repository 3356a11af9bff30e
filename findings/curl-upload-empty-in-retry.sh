#!/usr/bin/env bash
# Guess: curl --retry with a body from a pipe (-T -) sends the same body again, or says that it
#   cannot. For -d @- and -F it keeps the body in memory.
# Software: Debian packages curl and libcurl4 7.88.1-10+deb12u15 (needs Debian 12 and Node).
# Seen: after a 503 the request comes again with an empty chunked body, is answered 200, and curl
#   ends with exit status 0. -d @- sends the whole body again.
# Why it matters: an event that was refused for a moment arrives as an empty one, and counts as
#   delivered: a pipe into curl -T - is how large ones are sent without a file.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.js <<'JS'
const http = require("node:http");
const { execFile } = require("node:child_process");

const env = { ...process.env, LD_LIBRARY_PATH: "usr/lib/x86_64-linux-gnu" };
const send = (...how) => new Promise((done) => {
  const got = [];
  const server = http.createServer((req, res) => {
    let body = "";
    req.on("data", (bytes) => { body += bytes; }).on("end", () => {
      got.push(body || "nothing");
      res.writeHead(got.length === 1 ? 503 : 200).end();
    });
  }).listen(0, "127.0.0.1", () => {
    const curl = execFile("usr/bin/curl", ["-sS", "--retry", "2", "--retry-delay", "1", "-X", "POST", ...how,
      `http://127.0.0.1:${server.address().port}/hook`], { env }, (error) => {
      server.close();
      const seen = `${got.join(", then ")}: exit status ${error ? error.code : 0}`;
      console.log(`curl 7.88.1 ${how.join(" ")}: sent ${seen}`);
      done(seen);
    });
    curl.stdin.end('{"id":1}');
  });
});

(async () => {
  const upload = await send("-T", "-");
  const data = await send("-d", "@-");
  process.exit(upload === '{"id":1}, then nothing: exit status 0' && data === '{"id":1}, then {"id":1}: exit status 0' ? 0 : 1);
})();
JS
timeout 50 node main.js
