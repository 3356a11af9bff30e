#!/usr/bin/env bash
# Guess: Traffic Server skips, or passes on, a "102 Processing" of the backend, and then the 200. RFC
#   9110, section 15.2, has a client read any 1xx before the final response.
# Software: Debian package trafficserver 9.2.5+ds-0+deb12u4, which calls itself 9.2.9 (needs Debian 12
#   and Node).
# Seen: it passes on the 102 and closes: the 200 never comes. Behind 100 and 103 it comes.
# Why it matters: the receiver has run the event, the sender sees a broken connection and sends it
#   again, for ever.
set -euo pipefail
dir=$(mktemp -d); chmod 777 "$dir"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download trafficserver=9.2.5+ds-0+deb12u4 libhwloc15 libpcre3 libyaml-cpp0.7 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
mkdir -p run log.d cache
cat > runroot.yaml <<YAML
prefix: $dir
exec_prefix: $dir/usr
bindir: $dir/usr/bin
sbindir: $dir/usr/sbin
sysconfdir: $dir/etc/trafficserver
datadir: $dir/usr/share/trafficserver
includedir: $dir/usr/include
libdir: $dir/usr/lib/trafficserver
libexecdir: $dir/usr/lib/trafficserver/modules
localstatedir: $dir/run
runtimedir: $dir/run
logdir: $dir/log.d
cachedir: $dir/cache
YAML
cat > main.js <<'JS'
const http = require("node:http");
const net = require("node:net");
const fs = require("node:fs");
const { spawn } = require("node:child_process");

let runs = 0;
const backend = http.createServer((req, res) => {
  req.resume().on("end", () => {
    runs++;
    const head = { "/100": "100 Continue", "/102": "102 Processing", "/103": "103 Early Hints" }[req.url];
    if (head) req.socket.write(`HTTP/1.1 ${head}\r\n\r\n`);
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
const statuses = (port, path) => new Promise((done) => {
  let answer = "";
  const socket = net.connect(port, "127.0.0.1", () => socket.write(`POST ${path} HTTP/1.1\r\nHost: hooks.example.com\r\n` +
    "Connection: close\r\nContent-Length: 2\r\n\r\n{}"));
  socket.on("data", (data) => { answer += data; });
  socket.on("error", () => {}).on("close", () => done([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map((m) => m[1]).join(" then ")));
});

(async () => {
  const at = await freePort();
  fs.writeFileSync("etc/trafficserver/records.config", `CONFIG proxy.config.http.server_ports STRING ${at}:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 2
CONFIG proxy.config.cache.ram_cache.size INT 8M
`);
  fs.writeFileSync("etc/trafficserver/storage.config", `${process.cwd()}/cache 16M\n`);
  fs.writeFileSync("etc/trafficserver/remap.config", `map / http://127.0.0.1:${await listen(backend)}/\n`);
  const server = spawn("usr/bin/traffic_server", [`--run-root=${process.cwd()}/runroot.yaml`], { stdio: "ignore",
    env: { ...process.env, LD_LIBRARY_PATH: "usr/lib/trafficserver:usr/lib/x86_64-linux-gnu:lib/x86_64-linux-gnu" } });
  const end = (code) => { server.kill("SIGKILL"); process.exit(code); };
  for (const until = Date.now() + 25000; await statuses(at, "/200") !== "200";) {
    if (Date.now() > until) { console.log("Traffic Server does not listen"); end(2); }
  }
  runs = 0;
  const seen = [];
  for (const path of ["/100", "/102", "/103"]) {
    seen.push(await statuses(at, path));
    console.log(`trafficserver 9.2.9: ${path.slice(1)} then 200 from the backend: the caller gets ${seen.at(-1)}`);
  }
  end(seen[0].endsWith("200") && seen[1] === "102" && seen[2].endsWith("200") && runs === 3 ? 0 : 1);
})();
JS
timeout 50 node main.js
