#!/usr/bin/env bash
# Guess: requests.post(url, data=text) sends a str as UTF-8, as everything else does.
# Software: Debian packages python3-requests 2.28.1+dfsg-1 and python3-urllib3 1.26.12-1+deb12u4
#   (needs Debian 12, its Python, and Node). From urllib3 2 on it is UTF-8.
# Seen: it sends Latin-1: {"name":"José"} arrives as bytes that are no UTF-8, and so no JSON, and is
#   not what a signature over text.encode() was made of. A letter that Latin-1 lacks ("Łukasz") raises
#   UnicodeEncodeError. json=, which escapes what is not ASCII, and text.encode() arrive whole.
# Why it matters: of json.dumps(event, ensure_ascii=False) all events arrive but those of some
#   customers, which are refused, or raise in the sender.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-requests=2.28.1+dfsg-1 python3-urllib3=1.26.12-1+deb12u4 python3-idna python3-chardet \
  python3-certifi python3-six >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > send.py <<'PY'
import json, sys
import requests

assert requests.__version__ == "2.28.1"
how, name, url = sys.argv[1:]
text = json.dumps({"name": name}, ensure_ascii=False)
body = {"json": {"json": {"name": name}}, "str": {"data": text}, "bytes": {"data": text.encode()}}[how]
try:
    print(requests.post(url, timeout=5, **body).status_code, end="")
except UnicodeError as error:
    print(type(error).__name__, end="")
PY
cat > main.js <<'JS'
const http = require("node:http");
const { execFile } = require("node:child_process");

const env = { ...process.env, PYTHONPATH: "usr/lib/python3/dist-packages", PYTHONIOENCODING: "utf-8" };
const received = (body) => { // what a receiver makes of it
  try { return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)).name; } catch (e) { return e.name; }
};
const send = (how, name) => new Promise((done) => {
  let got = "nothing";
  const server = http.createServer((req, res) => {
    const parts = [];
    req.on("data", (part) => parts.push(part)).on("end", () => { got = received(Buffer.concat(parts)); res.end(); });
  }).listen(0, "127.0.0.1", () => execFile("/usr/bin/python3", ["send.py", how, name,
    `http://127.0.0.1:${server.address().port}/hook`], { env }, (error, output, text) => {
    server.close();
    done(error ? text : `${output}, the receiver reads ${got}`);
  }));
});

(async () => {
  let same = true;
  for (const [how, name, want] of [
    ["str", "Ann", "200, the receiver reads Ann"], ["str", "José", "200, the receiver reads TypeError"],
    ["str", "Łukasz", "UnicodeEncodeError, the receiver reads nothing"],
    ["json", "José", "200, the receiver reads José"], ["bytes", "José", "200, the receiver reads José"],
  ]) {
    const seen = await send(how, name);
    console.log(`requests 2.28.1, urllib3 1.26.12: ${name} as ${how}: ${seen}`);
    same = same && seen === want;
  }
  process.exit(same ? 0 : 1);
})();
JS
timeout 50 node main.js
