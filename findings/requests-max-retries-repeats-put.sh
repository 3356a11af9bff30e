#!/usr/bin/env bash
# Guess: HTTPAdapter(max_retries=3) of requests repeats what could not connect, and nothing else: its
#   documentation says "never to requests where data has made it to the server".
# Software: Debian packages python3-requests 2.28.1+dfsg-1, python3-urllib3 1.26.12-1+deb12u4 (needs Debian
#   12 and its Python).
# Seen: a PUT or DELETE that was read and then not answered is sent four times within milliseconds; one
#   that is answered 429 or 503 is sent four times if the answer has a Retry-After, once if not. A POST
#   is sent once. With urllib3 alone, a PoolManager without any setting repeats the PUT, too, and
#   Retry(allowed_methods=["POST"]), which names no status, the POST that is refused with Retry-After.
# Why it matters: the setting that is to outlive a restart of the receiver runs one change four times,
#   and tells nobody; a header decides what status_forcelist was left empty for.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-requests=2.28.1+dfsg-1 python3-urllib3=1.26.12-1+deb12u4 python3-chardet python3-idna \
  python3-certifi python3-six >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.py <<'PY'
import http.server
import sys
import threading

import requests
import urllib3
from requests.adapters import HTTPAdapter

seen = []


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        seen.append(self.command)
        if self.path == "/cut":
            self.close_connection = True
            return
        self.send_response(503)
        self.send_header("Content-Length", "0")
        if self.path == "/busy":
            self.send_header("Retry-After", "1")
        self.end_headers()

    do_PUT = do_DELETE = do_POST = answer

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
session = requests.Session()
session.trust_env = False
session.mount("http://", HTTPAdapter(max_retries=3))
plain = urllib3.PoolManager()
post = urllib3.PoolManager(retries=urllib3.Retry(3, allowed_methods=["POST"]))
same = True
for what, send, method, path, want in [
    ("requests, max_retries=3", session.request, "PUT", "/cut", 4),
    ("requests, max_retries=3", session.request, "DELETE", "/busy", 4),
    ("requests, max_retries=3", session.request, "DELETE", "/busy-without-header", 1),
    ("requests, max_retries=3", session.request, "POST", "/cut", 1),
    ("urllib3, no setting", plain.request, "PUT", "/cut", 4),
    ('urllib3, allowed_methods=["POST"]', post.request, "POST", "/busy", 4),
    ('urllib3, allowed_methods=["POST"]', post.request, "POST", "/busy-without-header", 1),
]:
    seen.clear()
    try:
        end = send(method, url + path)
        end = getattr(end, "status_code", None) or end.status
    except Exception as error:
        end = type(error).__name__
    print(f"{what}: {method} {path} came {len(seen)} times: {end}")
    same = same and len(seen) == want
sys.exit(0 if same and (requests.__version__, urllib3.__version__) == ("2.28.1", "1.26.12") else 1)
PY
PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 main.py
