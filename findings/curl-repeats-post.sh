#!/usr/bin/env bash
# Guess: curl without --retry sends a POST once.
# Software: Debian packages curl and libcurl4 7.88.1-10+deb12u15 (needs Debian 12 and Node).
# Seen: where a connection is used again and the server closes it after reading the request, without
#   an answer, curl sends the request again on a new one: it runs twice, and the caller sees one 200
#   and exit status 0. On a new connection the same is exit status 52, and it runs once.
# Why it matters: a server or a proxy that dies during a request turns one call into two. libcurl
#   does it, so senders in many languages do.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.js <<'JS'
const http = require("node:http");
const { execFile } = require("node:child_process");

let runs = 0;
const server = http.createServer((req, res) => {
  req.resume().on("end", () => {
    if (req.url === "/charge" && ++runs === 1) return req.socket.destroy(); // the whole request was read
    res.end("ok\n");
  });
});
const env = { ...process.env, LD_LIBRARY_PATH: "usr/lib/x86_64-linux-gnu" };
const call = (name, paths) => new Promise((done) => {
  runs = 0;
  const urls = paths.map((path) => `http://127.0.0.1:${server.address().port}${path}`);
  execFile("usr/bin/curl", ["-sS", "-d", "{}", ...urls], { env }, (error) => {
    const code = error ? error.code : 0;
    console.log(`curl 7.88.1, POST on a ${name} connection: run ${runs} times, exit status ${code}`);
    done(`${runs}:${code}`);
  });
});
server.listen(0, "127.0.0.1", async () => {
  const seen = [await call("new", ["/charge"]), await call("used", ["/first", "/charge"])];
  server.close();
  process.exit(seen.join() === "1:52,2:0" ? 0 : 1);
});
JS
timeout 50 node main.js
