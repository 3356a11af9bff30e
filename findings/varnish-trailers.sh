#!/usr/bin/env bash
# Guess: Varnish drops the trailers of a chunked POST, as RFC 9110, section 6.5.1, lets it, and passes
#   on the backend's answer.
# Software: Debian packages varnish 7.1.1-2+deb12u1 and libvarnishapi3 (needs Debian 12, gcc, Node).
# Seen: the backend gets the whole request, last chunk included, and answers 200; the caller gets
#   Varnish's own 503. Without trailers the same request is 200.
# Why it matters: the receiver has run the event, the sender sees a failure and sends it again, for
#   ever.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download varnish=7.1.1-2+deb12u1 libvarnishapi3=7.1.1-2+deb12u1 libjemalloc2 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.js <<'JS'
const http = require("node:http");
const net = require("node:net");
const { spawn } = require("node:child_process");

const runs = [];
const backend = http.createServer((req, res) => {
  let body = "";
  req.on("data", (data) => { body += data; });
  req.on("end", () => { runs.push(body); res.end("ok"); });
});
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
const freePort = async () => {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((done) => server.close(done));
  return port;
};
const post = (port, trailer) => new Promise((done) => {
  let answer = "";
  const socket = net.connect(port, "127.0.0.1", () => socket.write("POST /hook HTTP/1.1\r\nHost: hooks.example.com\r\n" +
    "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"id\":1}\r\n0\r\n" + trailer + "\r\n"));
  socket.on("data", (data) => { answer += data; });
  socket.on("error", () => {}).on("close", () => done(answer.split("\r\n")[0]));
});

(async () => {
  const at = await freePort();
  const lib = "usr/lib/x86_64-linux-gnu";
  const varnish = spawn("usr/sbin/varnishd", ["-F", "-a", `127.0.0.1:${at}`, "-b", `127.0.0.1:${await listen(backend)}`,
    "-n", `${process.cwd()}/work`, "-s", "malloc,16m", "-j", "none"],
  { env: { ...process.env, LD_LIBRARY_PATH: `${lib}:${lib}/varnish` }, stdio: "ignore" });
  const end = (code) => { varnish.kill(); varnish.on("exit", () => process.exit(code)); };
  let plain;
  for (const until = Date.now() + 20000; !(plain = await post(at, ""));) {
    if (Date.now() > until) { console.log("Varnish does not listen"); return end(2); }
  }
  const before = runs.length;
  const trailed = await post(at, "X-Checksum: abc\r\n");
  console.log(`varnish 7.1.1: without trailers "${plain}"; with one "${trailed}", and the backend got ${runs.slice(before)}`);
  end(plain === "HTTP/1.1 200 OK" && trailed.startsWith("HTTP/1.1 503") && runs.length === before + 1 ? 0 : 1);
})();
JS
timeout 50 node main.js
