#!/usr/bin/env bash
# Guess: axios-retry leaves a POST alone by default, because it is not idempotent; if it repeats one
#   at all, then after a 503, which says that nothing was done, and not after a connection that
#   breaks when the server has read the whole request.
# Software: axios-retry 4.5.0, axios 1.21.1 (npm), defaults but for the delay; superagent 10.4.2.
# Seen: the reverse. A POST that is answered 503 is sent once; one whose connection is cut after the
#   server has read it is sent four times. superagent's retry(3) repeats both, four times within
#   half a second, although the 503 has Retry-After: 2.
# Why it matters: what may have been executed is sent again, what was refused is not.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > package.json <<'JSON'
{"private": true, "dependencies": {"axios": "1.21.1", "axios-retry": "4.5.0", "superagent": "10.4.2"}}
JSON
cat > finding.js <<'JS'
const http = require('node:http');
const axios = require('axios');
const axiosRetry = require('axios-retry').default;
const superagent = require('superagent');

let seen;
const server = http.createServer((req, res) => req.resume().on('end', () => {
  seen.push(Date.now());
  if (req.url === '/cut') return req.socket.destroy();
  res.writeHead(503, { 'Retry-After': '2' }).end();
}));
server.listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const client = axios.create();
  axiosRetry(client, { retries: 3, retryDelay: () => 10 });
  let same = true;
  for (const [what, post, path, times, fast] of [
    ['axios-retry 4.5.0', (to) => client.post(to, { order: 1 }), '/busy', 1, true],
    ['axios-retry 4.5.0', (to) => client.post(to, { order: 1 }), '/cut', 4, false],
    ['superagent 10.4.2', (to) => superagent.post(to).send({ order: 1 }).retry(3), '/busy', 4, true],
    ['superagent 10.4.2', (to) => superagent.post(to).send({ order: 1 }).retry(3), '/cut', 4, true],
  ]) {
    seen = [];
    const end = await post(url + path).then(() => 'no error', (err) => err.message);
    const took = seen.at(-1) - seen[0];
    console.log(`${what}: a POST to ${path} came ${seen.length} times within ${took < 500 ? 'half a second' : took + ' ms'}; ${end}`);
    same = same && seen.length === times && (!fast || took < 500);
  }
  process.exit(same ? 0 : 1);
});
JS
npm install --silent --no-audit --no-fund --ignore-scripts >log 2>&1 || { cat log; exit 2; }
timeout 50 node finding.js
