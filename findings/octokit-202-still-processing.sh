#!/usr/bin/env bash
# Guess: the middleware of @octokit/webhooks answers when its handlers have ended: 200, or 500 if
#   one of them threw, as it does for a handler that throws at once.
# Software: @octokit/webhooks 14.2.0 (npm), createNodeMiddleware, defaults.
# Seen: after nine seconds it answers "202 still processing" while the handler works on. If that
#   throws afterwards, nothing is answered, logged or rejected.
# Why it matters: for the sender, and for a proxy that keeps events of one repository apart, the
#   event is over: the next one runs beside it, and a failure is final without a trace.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @octokit/webhooks@14.2.0 >log 2>&1 || { cat log; exit 2; }
cat > main.mjs <<'JS'
import http from 'node:http';
import { Webhooks, createNodeMiddleware } from '@octokit/webhooks';

const traces = [];
const trace = (what) => traces.push(String(what).split('\n')[0]);
console.error = trace;
process.on('unhandledRejection', trace).on('warning', trace);
const webhooks = new Webhooks({ secret: 'secret', log: { debug() {}, info: trace, warn: trace, error: trace } });
let ended = 0;
webhooks.on('push', async ({ payload }) => {
  await new Promise((done) => setTimeout(done, payload.takes));
  ended++;
  throw new Error('the database is locked');
});
const server = http.createServer(createNodeMiddleware(webhooks));
await new Promise((done) => server.listen(0, '127.0.0.1', done));
let same = true;
for (const [takes, want, logged] of [[0, '500', 1], [11000, '202 still processing', 0]]) {
  const body = JSON.stringify({ takes, repository: { full_name: 'acme/shop' } });
  const started = Date.now();
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/api/github/webhooks`, {
    method: 'POST', body, headers: {
      'Content-Type': 'application/json', 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': `evt_${takes}`,
      'X-Hub-Signature-256': await webhooks.sign(body),
    },
  });
  const got = `${answer.status} ${answer.status === 202 ? (await answer.text()).trim() : ''}`.trim();
  console.log(`@octokit/webhooks 14.2.0: a handler that throws after ${takes / 1000} s: ${got} after ${Math.floor((Date.now() - started) / 1000)} s`);
  same = same && got === want && traces.length === logged;
  traces.length = 0;
}
while (ended < 2) await new Promise((done) => setTimeout(done, 100));
await new Promise((done) => setTimeout(done, 1000));
console.log(`the late one threw; logged, warned of or rejected: ${traces.length ? traces.join(', ') : 'nothing'}`);
process.exit(same && traces.length === 0 ? 0 : 1);
JS
timeout 50 node main.mjs
