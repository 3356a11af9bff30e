#!/usr/bin/env bash
# Guess: wget --post-data sends its POST once, as curl without --retry does; --tries is for
#   downloads.
# Software: Debian package wget 1.21.3-1+deb12u1 (needs Debian 12 and Node), defaults.
# Seen: a POST that was read and then not answered is sent again, 20 times at most, a second, two,
#   three apart, also after a read timeout; one that was answered 200, with a body that is cut, is
#   sent again with "Range: bytes=3-", and the second answer from its fourth byte on is put behind
#   the first. Exit status 0 in each case. A 503, which asks for it, is not sent again.
# Why it matters: a call from cron or a hook script that the receiver has run runs up to 20 times,
#   and one that it refused for a moment is lost. (--tries=1 sends once.)
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download wget=1.21.3-1+deb12u1 >log 2>&1 || { cat log; exit 2; }
dpkg -x wget_*.deb .
cat > main.js <<'JS'
const net = require("node:net");
const { execFile } = require("node:child_process");

const whole = (status, body) => `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
// What the receiver does with its first POST; the second is answered 200.
const first = {
  "closes": (socket) => socket.destroy(),
  "is silent": () => {},
  "200, cut after 3 of 8 bytes": (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nrec"),
  "503 once": (socket) => socket.end(whole("503 Busy", "busy")),
};

const post = (answer) => new Promise((done) => {
  const got = [];
  const receiver = net.createServer((socket) => {
    socket.on("error", () => {});
    let request = "";
    socket.on("data", (bytes) => {
      request += bytes;
      if (!request.endsWith('\r\n\r\n{"id":1}')) return;
      got.push(/^POST/.test(request) ? "POST" + (/\r\n(Range: .*)\r\n/.exec(request) || ["", ""])[1] : "?");
      if (got.length === 1) answer(socket); else socket.end(whole("200 OK", "accepted"));
    });
  }).listen(0, "127.0.0.1", () => execFile("usr/bin/wget", ["--no-config", "-q", "-O", "-", "--read-timeout=2",
    '--post-data={"id":1}', `http://127.0.0.1:${receiver.address().port}/hook`], (error, output) => {
    receiver.close();
    done(`${got.join(", ")}: exit status ${error ? error.code : 0}, "${output}"`);
  }));
});

(async () => {
  const want = {
    "closes": 'POST, POST: exit status 0, "accepted"',
    "is silent": 'POST, POST: exit status 0, "accepted"',
    "200, cut after 3 of 8 bytes": 'POST, POSTRange: bytes=3-: exit status 0, "recepted"',
    "503 once": 'POST: exit status 8, ""',
  };
  let same = true;
  for (const [what, answer] of Object.entries(first)) {
    const got = await post(answer);
    console.log(`wget 1.21.3, the first answer: ${what}: ${got}`);
    same = same && got === want[what];
  }
  process.exit(same ? 0 : 1);
})();
JS
timeout 50 node main.js
