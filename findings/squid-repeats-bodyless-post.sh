#!/usr/bin/env bash
# Guess: Squid, as a reverse proxy with two parents, passes on the answer of the one that it asked.
# Software: Debian packages squid and squid-common 5.7-2+deb12u6 (needs Debian 12 and Node).
# Seen: a POST without a body that one parent answered 502 or 504 goes to the other parent as well;
#   with a body, or after 500 and 503, it does not. retry_on_error, which is off, is not asked.
# Why it matters: 502 and 504 are what an application's own gateway says of work that may have been
#   done. A call that carries all it says in its path and header runs twice.
set -euo pipefail
dir=$(mktemp -d); chmod 777 "$dir"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download squid=5.7-2+deb12u6 squid-common=5.7-2+deb12u6 libecap3 libltdl7 libnetfilter-conntrack3 \
  libnfnetlink0 libmnl0 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.js <<'JS'
const http = require("node:http");
const net = require("node:net");
const fs = require("node:fs");
const { spawn } = require("node:child_process");

let runs = 0;
const parent = () => http.createServer((req, res) => {
  req.resume().on("end", () => { runs++; res.writeHead(Number(req.url.slice(1))); res.end("x"); });
});
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
const freePort = async () => {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((done) => server.close(done));
  return port;
};
const post = (port, status, body) => new Promise((done) => {
  runs = 0;
  http.request({ host: "127.0.0.1", port, path: `/${status}`, method: "POST", agent: false,
    headers: { "Content-Length": body.length } }, (res) => {
    res.resume().on("end", () => done(runs));
  }).on("error", () => done(0)).end(body);
});

(async () => {
  const at = await freePort();
  const here = process.cwd();
  const peer = async (name) => `cache_peer 127.0.0.1 parent ${await listen(parent())} 0 no-query originserver round-robin name=${name}`;
  fs.writeFileSync("squid.conf", `http_port 127.0.0.1:${at} accel defaultsite=hooks.example.com
${await peer("a")}
${await peer("b")}
http_access allow all
never_direct allow all
cache deny all
mime_table ${here}/usr/share/squid/mime.conf
icon_directory ${here}/usr/share/squid/icons
error_directory ${here}/errors
pid_filename ${here}/pid
cache_log ${here}/cache.log
access_log none
coredump_dir ${here}
pinger_enable off
unlinkd_program ${here}/usr/lib/squid/unlinkd
max_filedescriptors 1024
`);
  fs.mkdirSync("errors");
  const squid = spawn("usr/sbin/squid", ["-N", "-f", `${here}/squid.conf`],
    { env: { ...process.env, LD_LIBRARY_PATH: "usr/lib/x86_64-linux-gnu" }, stdio: "ignore" });
  const end = (code) => { squid.kill("SIGKILL"); process.exit(code); };
  for (const until = Date.now() + 20000; !(await post(at, 200, ""));) {
    if (Date.now() > until) { console.log("Squid does not listen"); end(2); }
  }
  const seen = {};
  for (const status of [500, 502, 503, 504]) {
    seen[status] = `${await post(at, status, "")}/${await post(at, status, "{}")}`;
    console.log(`squid 5.7: POST answered ${status}: sent ${seen[status].replace("/", " times without a body, ")} with one`);
  }
  end(Object.values(seen).join() === "1/1,2/1,1/1,2/1" ? 0 : 1);
})();
JS
timeout 50 node main.js
