#!/usr/bin/env bash
# Guess: a copy that nginx sends by its mirror directive costs the caller nothing: the answer of the
#   copy is ignored, so nothing waits for it, nor does a copy that fails.
# Software: Debian packages nginx and nginx-common 1.22.1-9+deb12u11 (needs Debian 12 and Node).
# Seen: the answer comes at once, and the next request on the same connection is not read before the
#   copy has been answered: a second server that takes 3 s makes each event but the first take 3 s.
#   On a connection of its own each takes milliseconds.
# Why it matters: a new receiver that is tried on a copy of the real traffic slows the real one, for
#   senders that keep connections; those with a short timeout repeat what had not begun.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download nginx=1.22.1-9+deb12u11 nginx-common=1.22.1-9+deb12u11 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.js <<'JS'
const http = require('node:http');
const fs = require('node:fs');
const { spawn } = require('node:child_process');

const listen = (server) => new Promise((done) => server.listen(0, '127.0.0.1', () => done(server.address().port)));
const service = (delay) => listen(http.createServer((req, res) => {
  req.resume().on('end', () => setTimeout(() => res.end('ok'), delay));
}));
const post = (port, agent) => new Promise((done, fail) => {
  const started = Date.now();
  http.request({ host: '127.0.0.1', port, method: 'POST', path: '/hooks', agent }, (res) => {
    res.resume().on('end', () => done(Date.now() - started));
  }).on('error', fail).end('{"id":"evt_1"}');
});

(async () => {
  const here = process.cwd();
  const probe = http.createServer();
  const at = await listen(probe);
  await new Promise((done) => probe.close(done));
  fs.writeFileSync('nginx.conf', `daemon off; master_process off; pid ${here}/pid; error_log ${here}/errors;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${here}/${name};`).join(' ')}
  server {
    listen 127.0.0.1:${at};
    location / { mirror /copy; proxy_pass http://127.0.0.1:${await service(0)}; }
    location = /copy { internal; proxy_pass http://127.0.0.1:${await service(3000)}$request_uri; }
  }
}
`);
  const nginx = spawn('usr/sbin/nginx', ['-e', `${here}/errors`, '-c', `${here}/nginx.conf`], { stdio: 'ignore' });
  const end = (code) => { nginx.kill('SIGKILL'); process.exit(code); };
  for (const until = Date.now() + 20000; ; ) {
    const up = await post(at, false).catch(() => undefined);
    if (up !== undefined) break;
    if (Date.now() > until) { console.log('nginx does not listen'); end(2); }
    await new Promise((done) => setTimeout(done, 100));
  }
  const slow = (took) => took > 2500;
  const kept = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const say = (took) => (slow(took) ? 'about 3 s' : 'at once');
  const same = [await post(at, kept), await post(at, kept), await post(at, kept)];
  const own = [await post(at, false), await post(at, false)];
  console.log(`nginx 1.22.1, mirror to a server that takes 3 s: on one connection: ${same.map(say).join(', ')}; each on its own: ${own.map(say).join(', ')}`);
  end([...same, ...own].map(slow).join() === 'false,true,true,false,false' ? 0 : 1);
})();
JS
timeout 50 node main.js
