#!/usr/bin/env bash
# Guess: Python's http.client skips a "103 Early Hints" (or 102) and returns the 200 behind it, as it
#   does with a 100. RFC 9110, section 15.2, has a client read any 1xx before the final response.
# Software: Python 3.11's http.client, and on it Debian packages python3-requests 2.28.1+dfsg-1 and
#   python3-urllib3 1.26.12-1+deb12u4 (needs Debian 12 and its Python).
# Seen: the 103 is the answer, without a body, and requests calls it ok. The 200 that follows when the
#   handler has ended stays on the connection and is the answer of the next request.
# Why it matters: a framework that starts to send hints, or says 102 while it works, is enough. A sender
#   takes one event's receipt, or refusal, for that of another, and nothing says so.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-requests=2.28.1+dfsg-1 python3-urllib3=1.26.12-1+deb12u4 python3-chardet python3-idna \
  python3-certifi python3-six >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.py <<'PY'
import http.client
import socket
import sys
import threading
import time

import requests


def receive(connection, information):
    lines = connection.makefile("rb")
    while lines.readline():
        length = 0
        while (line := lines.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        order = lines.read(length)
        connection.sendall(information)
        time.sleep(0.5)  # the handler's work
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(order), order))


def accept(listener, information):
    try:
        receive(listener.accept()[0], information)
    except OSError:
        pass  # the sender has closed its connection


def serve(information):
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener, information), daemon=True).start()
    return listener.getsockname()[1]


def with_http_client(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    for order in orders:
        connection.request("POST", "/", order)
        response = connection.getresponse()
        yield f"{response.status} {response.read().decode()}"


def with_requests(port):
    session = requests.Session()
    session.trust_env = False
    for order in orders:
        response = session.post(f"http://127.0.0.1:{port}/", data=order, timeout=5)
        yield f"{response.status_code if response.ok else 'not ok'} {response.text}"


orders = ["order 7", "order 8"]
same = True
for information, want in [
    (b"HTTP/1.1 100 Continue\r\n\r\n", ["200 order 7", "200 order 8"]),
    (b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n", ["103 ", "200 order 7"]),
]:
    for name, post in ("http.client", with_http_client), ("requests 2.28.1", with_requests):
        got = list(post(serve(information)))
        print(f"{name}: {information[9:12].decode()} before the 200: {orders} are answered {got}")
        same = same and got == want
sys.exit(0 if same and requests.__version__ == "2.28.1" else 1)
PY
PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 main.py
