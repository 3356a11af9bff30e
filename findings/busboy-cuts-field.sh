#!/usr/bin/env bash
# Guess: a form field that is longer than the parser takes is refused, or arrives whole.
# Software: busboy 1.6.0; @fastify/multipart 10.1.9 on fastify 5.12.8 (npm), defaults but for bodyLimit.
# Seen: a field of more than 1 MiB is cut to 1 MiB. busboy says valueTruncated in the third argument of
#   its event, which few read; @fastify/multipart with attachFieldsToBody gives the cut text alone, and
#   the answer is 200. (limits: {fieldSize} raises it.)
# Why it matters: mail services post mails as forms (SendGrid's Inbound Parse: text, html, email). A long
#   one loses its end, and the sender is told that it arrived.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts busboy@1.6.0 @fastify/multipart@10.1.9 fastify@5.12.8 >/dev/null || exit 2
cat > main.js <<'JS'
const http = require("node:http");
const busboy = require("busboy");
const Fastify = require("fastify");

const mail = "x".repeat(1.5 * 1024 * 1024);
const post = async (port) => {
  const form = new FormData();
  form.append("text", mail);
  const answer = await fetch(`http://127.0.0.1:${port}/hook`, { method: "POST", body: form });
  return `${answer.status} ${await answer.text()}`;
};

(async () => {
  const server = http.createServer((req, res) => {
    let seen;
    const parser = busboy({ headers: req.headers });
    parser.on("field", (name, value, info) => { seen = `${value.length} bytes, valueTruncated ${info.valueTruncated}`; });
    parser.on("error", () => res.writeHead(400).end()).on("close", () => res.end(seen));
    req.pipe(parser);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const fastify = Fastify({ bodyLimit: 10 << 20 });
  await fastify.register(require("@fastify/multipart"), { attachFieldsToBody: "keyValues" });
  fastify.post("/hook", async (req) => `${req.body.text.length} bytes`);
  await fastify.listen({ port: 0, host: "127.0.0.1" });
  const alone = await post(server.address().port);
  const inFastify = await post(fastify.server.address().port);
  console.log(`busboy 1.6.0: a field of ${mail.length} bytes: ${alone}`);
  console.log(`@fastify/multipart 10.1.9: a field of ${mail.length} bytes: ${inFastify}`);
  process.exit(alone === "200 1048576 bytes, valueTruncated true" && inFastify === "200 1048576 bytes" ? 0 : 1);
})();
JS
timeout 50 node main.js
