#!/usr/bin/env bash
# Guess: a PUT that was answered 200 is over: where the connection ends within the answer's body, the
#   caller gets an error, or the part. RetryAgent repeats what got no answer, or a 5xx.
# Software: undici 7.30.2 (npm), RetryAgent; got 14.6.6 (npm); defaults but for the delay.
# Seen: RetryAgent sends the PUT again with "Range: bytes=3-7", as for a download. The receiver runs it
#   again and answers 200, and the caller gets UND_ERR_REQ_RETRY. got sends it again without Range and
#   returns the second answer. A POST does the same with RetryAgent's methods: ["POST"].
# Why it matters: an event that ran and was answered runs twice at once, and counts as failed, so that
#   the sender's queue brings it a third time.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts undici@7.30.2 got@14.6.6 >/dev/null || exit 2
cat > main.mjs <<'JS'
import net from "node:net";
import { Agent, RetryAgent, request } from "undici";
import got from "got";

const retrying = (options) => new RetryAgent(new Agent(), { minTimeout: 50, ...options });
const viaAgent = (method, options) => async (url) => {
  const answer = await request(url, { method, body: "{}", dispatcher: retrying(options) });
  return `${answer.statusCode} ${await answer.body.text()}`;
};
const viaGot = async (url) => {
  const answer = await got.put(url, { body: "{}", retry: { calculateDelay: ({ computedValue }) => computedValue && 50 } });
  return `${answer.statusCode} ${answer.body}`;
};

// send counts the requests of a call whose first answer is cut.
const send = (call) => new Promise((done) => {
  const came = [];
  const receiver = net.createServer((socket) => {
    socket.on("error", () => {});
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes;
      if (!text.endsWith("{}")) return;
      came.push(text.split(" ")[0] + (/\r\nrange: ([^\r]*)/i.exec(text) || ["", ""])[1]);
      const cut = came.length === 1;
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n${cut ? "rec" : "received"}`);
      if (cut) setTimeout(() => socket.end(), 100);
    });
  }).listen(0, "127.0.0.1", async () => {
    const result = await call(`http://127.0.0.1:${receiver.address().port}/hook`).catch((e) => e.code);
    done(`${came.join(", then ")}; the caller gets ${result}`);
  });
});

let same = true;
for (const [what, call, want] of [
  ["RetryAgent", viaAgent("PUT", {}), "PUT, then PUTbytes=3-7; the caller gets UND_ERR_REQ_RETRY"],
  ["RetryAgent, methods POST", viaAgent("POST", { methods: ["POST"] }),
    "POST, then POSTbytes=3-7; the caller gets UND_ERR_REQ_RETRY"],
  ["got", viaGot, "PUT, then PUT; the caller gets 200 received"],
]) {
  const seen = await send(call);
  console.log(`undici 7.30.2, got 14.6.6: ${what}: sent ${seen}`);
  same = same && seen === want;
}
process.exit(same ? 0 : 1);
JS
timeout 50 node main.mjs
