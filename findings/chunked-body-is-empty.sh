#!/usr/bin/env bash
# Guess: a server that hands a chunked body to a script tells it the length, because CGI (RFC 3875, section
#   4.1.2) and WSGI have no other way to; or it refuses it with 411.
# Software: Debian packages apache2-bin 2.4.71-1~deb12u1, mod_cgid, and wsgiref of Python 3.11 (needs Debian
#   12 as root, with its Python, and Node); lighttpd 1.4.69-1, mod_cgi, to compare.
# Seen: Apache sets no CONTENT_LENGTH, wsgiref an empty one, so that a script which reads as many bytes as it
#   says reads none, and answers 200. With lighttpd it gets the whole body.
# Why it matters: senders that stream (Node without a length, curl -T -, Java's publishers of unknown length)
#   deliver empty events to scripts behind Apache and to Django's and Pyramid's development servers, and
#   are told that they arrived.
set -euo pipefail
[ "$(id -u)" = 0 ] || exit 2
dir=$(mktemp -d); chmod 755 "$dir"; cd "$dir"
trap 'for pid in $(cat *.pid 2>/dev/null); do kill "$pid" 2>/dev/null || true; done; sleep 1; rm -rf "$dir"' EXIT
apt-get download apache2-bin=2.4.71-1~deb12u1 lighttpd=1.4.69-1 libapr1 libaprutil1 libaprutil1-dbd-sqlite3 liblua5.3-0 libnettle8 \
  libpcre2-8-0 libxxhash0 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
mkdir www; cat > www/hook.cgi <<'CGI'
#!/bin/sh
printf 'Content-Type: text/plain\n\n[%s]' "$(head -c "${CONTENT_LENGTH:-0}")"
CGI
chmod 755 www/hook.cgi
free() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'; }
apache=$(free) lighttpd=$(free) wsgiref=$(free)
cat > apache.conf <<CONF
ServerRoot $dir
ServerName hooks
Listen 127.0.0.1:$apache
PidFile apache.pid
ErrorLog apache.log
User www-data
Group www-data
LoadModule mpm_event_module usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module usr/lib/apache2/modules/mod_authz_core.so
LoadModule cgid_module usr/lib/apache2/modules/mod_cgid.so
ScriptSock $dir/cgi.socket
DocumentRoot $dir/www
<Directory $dir/www>
  Options ExecCGI
  SetHandler cgi-script
</Directory>
CONF
cat > lighttpd.conf <<CONF
server.document-root = "$dir/www"
server.bind = "127.0.0.1"
server.port = $lighttpd
server.modules = ("mod_cgi")
cgi.assign = (".cgi" => "")
CONF
cat > app.py <<'PY'
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server


def app(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"[%s]" % body]


WSGIRequestHandler.log_message = lambda *_: None
make_server("127.0.0.1", int(sys.argv[1]), app).serve_forever()
PY
export LD_LIBRARY_PATH=$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu
usr/sbin/apache2 -f "$dir/apache.conf" >log 2>&1 || { cat log; exit 2; }
usr/sbin/lighttpd -D -f lighttpd.conf -m usr/lib/lighttpd >log 2>&1 & echo $! > lighttpd.pid
/usr/bin/python3 app.py "$wsgiref" & echo $! > wsgiref.pid
cat > main.js <<'JS'
const http = require("node:http");

const post = (port, length, left = 50) => new Promise((done) => {
  const to = { port, host: "127.0.0.1", path: "/hook.cgi", agent: false };
  const req = http.request({ ...to, method: "POST", headers: length }, (res) => {
    let body = "";
    res.on("data", (data) => { body += data; }).on("close", () => done(`${res.statusCode} ${body}`));
  });
  req.on("error", () => setTimeout(() => done(left ? post(port, length, left - 1) : "no answer"), 100));
  req.write("order "); // without a length Node sends chunks
  req.end("7");
});

(async () => {
  let same = true;
  for (const [name, port, want] of [["Apache 2.4.71, mod_cgid", process.argv[2], "200 []"],
    ["wsgiref, Python 3.11", process.argv[3], "200 []"], ["lighttpd 1.4.69, mod_cgi", process.argv[4], "200 [order 7]"]]) {
    const [whole, chunked] = [await post(port, { "Content-Length": 7 }), await post(port, {})];
    console.log(`${name}: with a length ${whole}, in chunks ${chunked}`);
    same = same && whole === "200 [order 7]" && chunked === want;
  }
  process.exit(same ? 0 : 1);
})();
JS
timeout 50 node main.js "$apache" "$wsgiref" "$lighttpd"
