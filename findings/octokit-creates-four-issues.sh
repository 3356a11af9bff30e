#!/usr/bin/env bash
# Guess: the official client of GitHub sends the POST that creates an issue once: it repeats what reads. If
#   it repeats one, then not after 409, and not where the connection broke.
# Software: octokit 5.0.5 (npm), with its defaults but for the unit of the delay (retryAfterBaseValue);
#   @gitbeaker/rest 43.8.0, the client of GitLab, with its defaults.
# Seen: octokit sends it four times after 409, 502, and a connection that is cut when the server has read
#   the request. @gitbeaker sends it ten times within seconds after 502, which says nothing of what
#   was done.
# Why it matters: a handler of webhooks that answers with an issue, a comment or a release makes four of
#   them when the first one's answer is lost; each sends webhooks of its own.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > package.json <<'JSON'
{"private": true, "type": "module", "dependencies": {"octokit": "5.0.5", "@gitbeaker/rest": "43.8.0"}}
JSON
cat > finding.js <<'JS'
import http from 'node:http';
import { Gitlab } from '@gitbeaker/rest';
import { Octokit } from 'octokit';

let times;
const server = http.createServer((req, res) => req.resume().on('end', () => {
  times += 1;
  if (req.url.startsWith('/cut')) return req.socket.destroy();
  res.writeHead(Number(req.url.slice(1, 4)), { 'Content-Type': 'application/json' }).end('{"message":"no"}');
}));
const quiet = Object.fromEntries(['debug', 'info', 'warn', 'error'].map((level) => [level, () => {}]));
const github = (baseUrl) => new Octokit({ baseUrl, log: quiet, retry: { retryAfterBaseValue: 10 } })
  .rest.issues.create({ owner: 'acme', repo: 'shop', title: 'order 7' });
const gitlab = (host) => new Gitlab({ host, token: 'x' }).Issues.create(1, 'order 7');

server.listen(0, '127.0.0.1', async () => {
  let same = true;
  for (const [what, create, path, want] of [
    ['octokit 5.0.5', github, '/422', 1],
    ['octokit 5.0.5', github, '/409', 4],
    ['octokit 5.0.5', github, '/502', 4],
    ['octokit 5.0.5', github, '/cut', 4],
    ['@gitbeaker/rest 43.8.0', gitlab, '/503', 1],
    ['@gitbeaker/rest 43.8.0', gitlab, '/502', 10],
  ]) {
    times = 0;
    const url = `http://127.0.0.1:${server.address().port}${path}`;
    const end = await create(url).then(() => 'no error', (err) => err.name);
    console.log(`${what}: POST …/issues, ${path}: came ${times} times; ${end}`);
    same = same && times === want;
  }
  process.exit(same ? 0 : 1);
});
JS
npm install --silent --no-audit --no-fund --ignore-scripts >log 2>&1 || { cat log; exit 2; }
timeout 50 node finding.js
