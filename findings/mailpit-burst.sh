#!/usr/bin/env bash
# Guess: --webhook-limit 5 ("limit webhook requests per second") lets five of six messages that
#   arrive within a second through, and delays or logs the sixth.
# Software: github.com/axllent/mailpit v1.33.1 (needs Node; the build takes a minute or two).
# Seen: one webhook comes. What arrives within 200 ms of it is neither sent later nor logged.
# Why it matters: each message but the first of a burst is lost to the receiver, without a trace.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
go get github.com/axllent/mailpit@v1.33.1 2>log || { cat log; exit 2; }
go build -o mailpit github.com/axllent/mailpit 2>log || { cat log; exit 2; }
cat > main.js <<'JS'
const http = require("node:http");
const net = require("node:net");
const { spawn } = require("node:child_process");

let came = 0;
const receiver = http.createServer((req, res) => req.resume().on("end", () => { came++; res.end(); }));
const freePort = () => new Promise((done) => {
  const s = net.createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
});
const fail = (error) => { console.log(error.message); process.exit(2); };

// say sends six messages in one SMTP session, as fast as the server takes them.
const say = (port) => new Promise((done, failed) => {
  const lines = ["EHLO x"];
  for (let i = 0; i < 6; i++) lines.push("MAIL FROM:<a@example.com>", "RCPT TO:<b@example.com>", "DATA", `Subject: ${i}\r\n\r\nhi\r\n.`);
  lines.push("QUIT");
  const c = net.connect(port, "127.0.0.1");
  c.on("data", (data) => { if (/^\d{3} .*\r\n$/m.test(data) && lines.length) c.write(lines.shift() + "\r\n"); });
  c.on("close", done).on("error", failed);
});

(async () => {
  await new Promise((listening) => receiver.listen(0, "127.0.0.1", listening));
  const [smtp, web] = [await freePort(), await freePort()];
  const mailpit = spawn("./mailpit", ["--smtp", `127.0.0.1:${smtp}`, "--listen", `127.0.0.1:${web}`, "--disable-version-check",
    "--webhook-url", `http://127.0.0.1:${receiver.address().port}/`, "--webhook-limit", "5"]);
  let log = "";
  for (const stream of [mailpit.stdout, mailpit.stderr]) stream.on("data", (data) => { log += data; });
  for (let i = 0; i < 100; i++) {
    if (await new Promise((r) => net.connect(smtp, "127.0.0.1").on("connect", function () { this.destroy(); r(true); }).on("error", () => r(false)))) break;
    await new Promise((r) => setTimeout(r, 100));
  }
  const began = Date.now();
  await say(smtp);
  const took = Date.now() - began;
  await new Promise((r) => setTimeout(r, 5000));
  const { total } = await (await fetch(`http://127.0.0.1:${web}/api/v1/messages`)).json();
  mailpit.kill();
  console.log(`mailpit 1.33.1: ${total} messages within ${took < 1000 ? "a second" : took + " ms"}; webhooks: ${came}; ` +
    `its log names a webhook: ${/webhook/i.test(log)}`);
  process.exit(total === 6 && came >= 1 && came < 5 && !/webhook/i.test(log) ? 0 : 1);
})().catch(fail);
JS
timeout 50 node main.js
