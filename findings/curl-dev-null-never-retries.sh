#!/usr/bin/env bash
# Guess: curl --retry 3 -o /dev/null sends again what was answered 503.
# Software: Debian packages curl and libcurl4 7.88.1-10+deb12u15 (needs Debian 12 and Node).
# Seen: once the answer has a body, curl cannot truncate /dev/null before the next attempt: it ends
#   with exit status 23 ("Failed to truncate file") after one. With a file or a pipe it sends four.
# Why it matters: a call from cron that throws the answer away, as most do, retries nothing.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.js <<'JS'
const http = require("node:http");
const { execFile } = require("node:child_process");

let requests = 0;
const server = http.createServer((req, res) => {
  requests++;
  req.resume().on("end", () => { res.writeHead(503); res.end("come again\n"); });
});
const env = { ...process.env, LD_LIBRARY_PATH: "usr/lib/x86_64-linux-gnu" };
const post = (output) => new Promise((done) => {
  requests = 0;
  execFile("usr/bin/curl", ["-sS", "--retry", "3", "--retry-delay", "1", "-d", "{}", ...output,
    `http://127.0.0.1:${server.address().port}/hook`], { env }, (error, stdout, stderr) => {
    console.log(`curl 7.88.1 ${output.join(" ") || "to a pipe"}: sent ${requests} times, exit status ` +
      `${error ? error.code : 0} ${stderr.trim()}`);
    done(requests);
  });
});
server.listen(0, "127.0.0.1", async () => {
  const seen = [await post(["-o", "/dev/null"]), await post(["-o", "answer"]), await post([])];
  server.close();
  process.exit(seen.join() === "1,4,4" ? 0 : 1);
});
JS
timeout 50 node main.js
