#!/usr/bin/env bash
# Guess: an update whose handler takes longer than webhookCallback's time limit (10 s) is answered 500, or
#   200, and the handler works on; the next updates are answered.
# Software: grammy 1.46.0 (npm), webhookCallback for Node's http, defaults but for the limit (500 ms, to be
#   quick), Node 20.
# Seen: nothing is answered. The error is a promise that nobody waits for, so the process ends, within this
#   handler's work and that of every other update.
# Why it matters: Telegram sends an update again that was not answered: where a supervisor restarts the bot,
#   the slow update begins again and ends the process again, and what others had begun is done twice.
#   (onTimeout: "return" answers 200.)
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > package.json <<'JSON'
{"private": true, "dependencies": {"grammy": "1.46.0"}}
JSON
cat > bot.js <<'JS'
const http = require('node:http');
const { Bot, webhookCallback } = require('grammy');

const bot = new Bot('1:token', { botInfo: { id: 1, is_bot: true, first_name: 'shop', username: 'shop_bot' } });
bot.on('message', async (context) => {
  if (context.message.text !== 'slow') return;
  await new Promise((done) => setTimeout(done, 1500));
  console.log('the slow handler ended');
});
const options = { timeoutMilliseconds: 500, ...(process.argv[2] && { onTimeout: process.argv[2] }) };
const server = http.createServer(webhookCallback(bot, 'http', options));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
JS
cat > main.js <<'JS'
const { spawn } = require('node:child_process');
const { once } = require('node:events');

const chat = { id: 7, type: 'private', first_name: 'A' };

async function run(...args) {
  const bot = spawn(process.execPath, ['bot.js', ...args]);
  const port = parseInt((await once(bot.stdout, 'data'))[0], 10);
  let out = '';
  bot.stdout.on('data', (data) => { out += data; });
  const ended = once(bot, 'exit').then(([code]) => `the process ended with ${code}`);
  const update = (id, text) => fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, signal: AbortSignal.timeout(5000),
    body: JSON.stringify({ update_id: id, message: { message_id: id, date: 1, text, chat } }),
  }).then((answer) => answer.status, () => 'no answer');
  const seen = [await update(1, 'quick'), await update(2, 'slow')];
  seen.push(await Promise.race([ended, new Promise((done) => setTimeout(done, 3000, 'the process lives'))]));
  seen.push(out.trim());
  bot.kill();
  return seen.join('; ');
}

(async () => {
  const seen = await run();
  console.log(`grammy 1.46.0: a quick update, a slow one: ${seen}`);
  const returned = await run('return');
  console.log(`the same with onTimeout "return": ${returned}`);
  process.exit(seen === '200; no answer; the process ended with 1; '
    && returned === '200; 200; the process lives; the slow handler ended' ? 0 : 1);
})();
JS
npm install --silent --no-audit --no-fund --ignore-scripts >log 2>&1 || { cat log; exit 2; }
timeout 50 node main.js
