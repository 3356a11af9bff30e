#!/usr/bin/env bash
# Guess: a PutObject with IfNoneMatch "*" (a lock, or an event ID that is to be taken once) whose
#   answer is lost ends with the error of the connection, or of the 500: unknown. "412
#   PreconditionFailed" means that another one was first.
# Software: @aws-sdk/client-s3 3.1175.0 (npm), defaults, against a server that stores the object and
#   then cuts the connection, or answers 500, once.
# Seen: 412. The SDK sends the PUT again by itself, with the condition, and meets its own object.
#   Only attempts, 2, in the error's $metadata tells it from a lock that another one holds.
# Why it matters: the one that has taken the event stands back from it, each later one gets 412 as
#   well, and the event never runs.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-sdk/client-s3@3.1175.0 >log 2>&1 || { cat log; exit 2; }
cat > main.mjs <<'JS'
import http from 'node:http';
import { S3Client, PutObjectCommand } from '@aws-sdk/client-s3';

const error = (code) => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
let same = true;
for (const [what, lose] of [
  ['cut', (req, res) => req.socket.destroy()],
  ['500', (req, res) => res.writeHead(500).end(error('InternalError'))],
]) {
  let stored, puts = 0;
  const server = http.createServer((req, res) => {
    const body = [];
    req.on('data', (part) => body.push(part)).on('end', () => {
      puts++;
      if (stored !== undefined && req.headers['if-none-match'] === '*') {
        res.writeHead(412).end(error('PreconditionFailed'));
        return;
      }
      stored = Buffer.concat(body).toString();
      lose(req, res);
    });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${server.address().port}`, region: 'us-east-1', forcePathStyle: true,
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
  });
  let got;
  try {
    await client.send(new PutObjectCommand({ Bucket: 'locks', Key: 'evt_1', Body: 'mine', IfNoneMatch: '*' }));
    got = 'stored';
  } catch (e) {
    got = e.name;
  }
  const mine = String(stored).includes('mine');
  console.log(`@aws-sdk/client-s3 3.1175.0: first answer ${what}: PUTs ${puts}, ${got}; the object is ${mine ? 'its own' : 'not its own'}`);
  same = same && got === 'PreconditionFailed' && puts === 2 && mine;
}
process.exit(same ? 0 : 1);
JS
AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null timeout 50 node main.mjs 2>errors
