#!/usr/bin/env bash
# Guess: a handler that throws (Express answers 500) frees its idempotency key, as a handler that
#   answers 503 does: the client's retry runs.
# Software: express-idempotency 1.0.6, express 4.22.3, defaults.
# Seen: after 503 the retry runs. After an exception it does not: each retry gets 409, "A previous
#   request is still in progress for this key", because Express's page for errors is written by
#   res.end(), and only res.send() ends a key. A 200 by res.end() is refused the same way.
# Why it matters: one exception, and the event never runs, however often its sender comes again.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > package.json <<'JSON'
{"private": true, "dependencies": {"express": "4.22.3", "express-idempotency": "1.0.6"}}
JSON
cat > finding.js <<'JS'
const express = require('express');
const idempotency = require('express-idempotency');

const app = express();
let runs = 0;
app.use(express.json(), idempotency.idempotency());
const keys = idempotency.getSharedIdempotencyService();
for (const [path, answer] of Object.entries({
  '/sends': (res) => res.send('done'),
  '/busy': (res) => res.status(503).send('busy'),
  '/throws': () => { throw new Error('the database is locked'); },
  '/ends': (res) => { res.writeHead(200); res.end('done'); },
})) {
  app.post(path, (req, res) => {
    if (keys.isHit(req)) return;
    runs++;
    answer(res);
  });
}
const server = app.listen(0, '127.0.0.1', async () => {
  let same = true;
  const send = async (path) => {
    const res = await fetch(`http://127.0.0.1:${server.address().port}${path}`, {
      method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'evt' + path },
    });
    return `${res.status} ${(await res.text()).replace(/<[^>]*>|\s+/g, ' ').replace('Error', '').trim()}`;
  };
  const busy = '409 Conflict';
  for (const [path, first, later, ran] of [
    ['/sends', '200 done', '200 done', 1],
    ['/busy', '503 busy', '503 busy', 4],
    ['/throws', '500 Internal Server Error', busy, 1],
    ['/ends', '200 done', busy, 1],
  ]) {
    runs = 0;
    const got = [];
    for (let i = 0; i < 4; i++) got.push(await send(path));
    console.log(`express-idempotency 1.0.6: ${path}: ${got[0]}; three retries: ${[...new Set(got.slice(1))].join(', ')}; ran ${runs}`);
    same = same && got[0] === first && got.slice(1).every((g) => g === later) && runs === ran;
  }
  process.exit(same ? 0 : 1);
});
JS
npm install --silent --no-audit --no-fund --ignore-scripts >log 2>&1 || { cat log; exit 2; }
NODE_ENV=production timeout 50 node finding.js 2>errors
