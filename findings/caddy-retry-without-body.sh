#!/usr/bin/env bash
# Guess: with lb_try_duration, Caddy sends a POST that found one backend dead to the other one.
# Software: Debian package caddy 2.6.2-5 (needs Debian 12 and Node).
# Seen: it sends the header with its Content-Length, and none of the body, which went with the
#   attempt to connect. The live backend waits for a body that never comes; the caller gets 502.
#   Every GET is 200, and so is a POST that finds the live backend first.
# Why it matters: the setting that is to hide a dead backend loses every delivery that meets it, and
#   a backend that counts requests by their header counts one.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download caddy=2.6.2-5 >log 2>&1 || { cat log; exit 2; }
dpkg -x caddy_*.deb .
cat > main.js <<'JS'
const http = require("node:http");
const net = require("node:net");
const fs = require("node:fs");
const { spawn } = require("node:child_process");

const arrived = [];
const live = http.createServer((req, res) => {
  let bytes = 0;
  const seen = () => arrived.push(`${bytes} of ${req.headers["content-length"] || 0} bytes`);
  req.on("data", (data) => { bytes += data.length; });
  req.on("end", () => { seen(); res.end("ok"); });
  req.on("error", seen);
});
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
const freePort = async () => {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((done) => server.close(done));
  return port;
};
const ask = (port, method, body) => new Promise((done) =>
  http.request({ host: "127.0.0.1", port, method, agent: false }, (res) => {
    res.resume().on("end", () => done(res.statusCode));
  }).on("error", (e) => done(e.code)).end(body));

(async () => {
  const [at, dead, well] = [await freePort(), await freePort(), await listen(live)];
  fs.writeFileSync("Caddyfile", `{
	admin off
	auto_https off
}
http://:${at} {
	reverse_proxy 127.0.0.1:${dead} 127.0.0.1:${well} {
		lb_policy round_robin
		lb_try_duration 1s
	}
}
`);
  const env = { ...process.env, HOME: ".", XDG_DATA_HOME: ".", XDG_CONFIG_HOME: "." };
  const caddy = spawn("usr/bin/caddy", ["run", "--config", "Caddyfile", "--adapter", "caddyfile"], { env, stdio: "ignore" });
  const end = (code) => { caddy.kill(); process.exit(code); };
  let get;
  for (const until = Date.now() + 20000; (get = await ask(at, "GET")) === "ECONNREFUSED";) {
    if (Date.now() > until) { console.log("Caddy does not listen"); end(2); }
  }
  const gets = [], posts = [];
  for (let i = 0; i < 6; i++) gets.push(await ask(at, "GET"));
  arrived.length = 0;
  for (let i = 0; i < 6; i++) posts.push(await ask(at, "POST", '{"id":1}'));
  console.log(`caddy 2.6.2, one of two backends dead: GET ${gets.join()}; POST ${posts.join()}; arrived: ${arrived.join(", ")}`);
  const lost = posts.filter((status) => status === 502).length;
  end(gets.every((status) => status === 200) && lost > 0 && arrived.includes("0 of 8 bytes") ? 0 : 1);
})();
JS
timeout 50 node main.js
