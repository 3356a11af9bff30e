#!/usr/bin/env bash
# Guess: a caller that closes its half of the connection after its request gets the backend's answer,
#   an error, or nothing. RFC 9112, section 9.6, lets it close its half.
# Software: Debian package caddy 2.6.2-5 (needs Debian 12 and Node).
# Seen: Caddy takes the caller for gone, gives up the backend, and answers 200 without a body, where
#   the backend would have said 503. With both halves open the caller gets the 503.
# Why it matters: the sender takes for done what was refused, or never arrived, and does not repeat
#   it: the event is lost.
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

const backend = http.createServer((req, res) => {
  req.on("error", () => {});
  req.resume().on("end", () => setTimeout(() => { res.writeHead(503); res.end("come again\n"); }, 500));
});
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
const freePort = async () => {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((done) => server.close(done));
  return port;
};
const request = "POST /hook HTTP/1.1\r\nHost: hooks.example.com\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
const status = (port, half) => new Promise((done) => {
  let answer = "";
  const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => half ? socket.end(request) : socket.write(request));
  socket.on("data", (data) => { answer += data; }).on("end", () => socket.end());
  socket.on("error", () => {}).on("close", () => done(answer.split(" ")[1]));
});

(async () => {
  const at = await freePort();
  fs.writeFileSync("Caddyfile", `{
	admin off
	auto_https off
}
http://:${at} {
	reverse_proxy 127.0.0.1:${await listen(backend)}
}
`);
  const env = { ...process.env, HOME: ".", XDG_DATA_HOME: ".", XDG_CONFIG_HOME: "." };
  const caddy = spawn("usr/bin/caddy", ["run", "--config", "Caddyfile", "--adapter", "caddyfile"], { env, stdio: "ignore" });
  const end = (code) => { caddy.kill(); process.exit(code); };
  let open;
  for (const until = Date.now() + 20000; !(open = await status(at, false));) {
    if (Date.now() > until) { console.log("Caddy does not listen"); end(2); }
  }
  const half = await status(at, true);
  console.log(`caddy 2.6.2, the backend answers 503: both halves open: ${open}; the caller's half closed: ${half}`);
  end(open === "503" && half === "200" ? 0 : 1);
})();
JS
timeout 50 node main.js
