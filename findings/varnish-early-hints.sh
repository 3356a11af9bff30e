#!/usr/bin/env bash
# Guess: Varnish skips a "103 Early Hints" of the backend and passes on the 200 behind it. RFC 9110,
#   section 15.2, has a client read any 1xx before the final response, also one it did not expect.
# Software: Debian packages varnish 7.1.1-2+deb12u1 and libvarnishapi3 (needs Debian 12, gcc, Node).
# Seen: the caller gets Varnish's own 503, with 102 and 103 alike; without them the same is 200.
# Why it matters: the receiver has run the event, the sender sees a failure and sends it again, for
#   ever. A framework that starts to send hints is enough.
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

const heads = { "/102": "HTTP/1.1 102 Processing\r\n\r\n", "/103": "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" };
let runs = 0;
const backend = http.createServer((req, res) => {
  req.resume().on("end", () => {
    runs++;
    if (heads[req.url]) req.socket.write(heads[req.url]);
    res.end("ok");
  });
});
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
const freePort = async () => {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((done) => server.close(done));
  return port;
};
const post = (port, path) => new Promise((done) =>
  http.request({ host: "127.0.0.1", port, path, method: "POST", agent: false }, (res) => {
    res.resume().on("end", () => done(res.statusCode));
  }).on("error", () => done(0)).end("{}"));

(async () => {
  const at = await freePort();
  const lib = "usr/lib/x86_64-linux-gnu";
  const varnish = spawn("usr/sbin/varnishd", ["-F", "-a", `127.0.0.1:${at}`, "-b", `127.0.0.1:${await listen(backend)}`,
    "-n", `${process.cwd()}/work`, "-s", "malloc,16m", "-j", "none"],
  { env: { ...process.env, LD_LIBRARY_PATH: `${lib}:${lib}/varnish` }, stdio: "ignore" });
  const end = (code) => { varnish.kill(); varnish.on("exit", () => process.exit(code)); };
  const seen = [];
  for (const until = Date.now() + 20000; !(seen[0] = await post(at, "/plain"));) {
    if (Date.now() > until) { console.log("Varnish does not listen"); return end(2); }
  }
  runs = 0;
  seen.push(await post(at, "/102"), await post(at, "/103"));
  console.log(`varnish 7.1.1: 200 alone: ${seen[0]}; behind 102: ${seen[1]}; behind 103: ${seen[2]}; the backend ran ${runs} of the last two`);
  end(seen.join() === "200,503,503" && runs === 2 ? 0 : 1);
})();
JS
timeout 50 node main.js
