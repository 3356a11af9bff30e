#!/usr/bin/env bash
# Guess: a backend that ends the connection after it has read a POST is a 502 to the caller of Apache's
#   mod_proxy, and the backend runs that POST once.
# Software: Debian packages apache2-bin 2.4.71-1~deb12u1 and curl 7.88.1-10+deb12u15 (needs Debian 12 as root, and
#   Node), a plain ProxyPass.
# Seen: so it is for the first request of a caller's connection. For a later one Apache closes that connection
#   without an answer, and curl, for which a kept connection has ended, sends the POST again by itself,
#   without --retry: the backend runs it twice. With KeepAlive Off it is once, and 502.
# Why it matters: a failure that is one 502 in any test with one request is two runs for a sender that keeps
#   its connections and repeats what one of them lost, as many clients do.
set -euo pipefail
[ "$(id -u)" = 0 ] || exit 2
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download apache2-bin=2.4.71-1~deb12u1 curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15 libapr1 libaprutil1 \
  libaprutil1-dbd-sqlite3 liblua5.3-0 libnettle8 libpcre2-8-0 libxxhash0 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH=$dir/usr/lib/x86_64-linux-gnu
cat > main.mjs <<'JS'
import { execFile, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';

const listen = (server) => new Promise((done) => server.listen(0, '127.0.0.1', () => done(server.address().port)));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
let ran = [];
const backend = await listen(http.createServer((request, response) => {
  let body = '';
  request.on('data', (data) => { body += data; }).on('end', () => {
    ran.push(body);
    if (body.startsWith('dies')) request.socket.destroy();
    else response.end('ok');
  });
}));
const free = net.createServer();
const port = await listen(free);
free.close();
const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_http'];
writeFileSync('httpd.conf', `ServerRoot ${process.cwd()}
ServerName test
PidFile pid
ErrorLog error.log
User nobody
Group nogroup
Listen 127.0.0.1:${port}
${modules.map((name) => `LoadModule ${name}_module usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
ProxyPass / http://127.0.0.1:${backend}/
`);
const url = `http://127.0.0.1:${port}/hooks`;
const post = (body) => ['-s', '-m', '9', '-o', 'answer', '-w', '%{http_code} ', '-d', body, url];
const curl = (...args) => new Promise((done) => execFile('usr/bin/curl', args, (_, text) => done(text.trim())));
let same = true;
for (const [setting, want] of [['KeepAlive On', ['dies 2', 'dies 2']], ['KeepAlive Off', ['dies 2']]]) {
  const apache = spawn('usr/sbin/apache2', ['-X', '-f', `${process.cwd()}/httpd.conf`, '-C', setting], { stdio: 'inherit' });
  while (await curl(...post('ready')) !== '200') await wait(100);
  ran = [];
  const alone = await curl(...post('dies 1'));
  const once = ran.length === 1 && alone === '502';
  ran = [];
  const both = await curl(...post('ok'), '--next', ...post('dies 2'));
  const later = ran.slice(1);
  console.log(`Apache 2.4.71, ${setting}: alone: ${alone}; second on its connection: ${both}; the backend ran ${later.join(', ')}`);
  same = same && once && both === '200 502' && later.join() === want.join();
  apache.kill();
  await new Promise((done) => apache.on('exit', done));
}
process.exit(same ? 0 : 1);
JS
timeout 50 node main.mjs
