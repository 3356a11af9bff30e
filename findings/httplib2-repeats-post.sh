#!/usr/bin/env bash
# Guess: httplib2 sends a POST once; if it sends one again, then on a kept connection that had ended.
# Software: Debian package python3-httplib2 0.20.4-3+deb12u1 (needs Debian 12 and its Python), defaults.
# Seen: a POST that was read and then not answered is sent again at once, also the first one of a
#   connection, and the caller gets the second answer. One that is not answered in time is sent once.
# Why it matters: Google's API client for Python sends through it, and whatever such a program makes (a
#   mail, a payment, a message) is made twice if the server ends between its work and its answer.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-httplib2=0.20.4-3+deb12u1 python3-pyparsing >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.py <<'PY'
import socket, sys, threading, time
import httplib2


def server(first):
    """Does first with its first request, and answers the others. Returns its port and how many have come."""
    listener, came = socket.create_server(("127.0.0.1", 0)), []

    def serve(connection):
        text = b""
        while not text.endswith(b'\r\n\r\n{"id":1}'):
            text += connection.recv(4096)
        came.append(text)
        if len(came) == 1:
            first()
        if len(came) > 1:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        connection.close()

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1], came


def post(what, first):
    port, came = server(first)
    try:
        got = httplib2.Http(timeout=1).request(f"http://127.0.0.1:{port}/hook", "POST", body='{"id":1}')[0].status
    except OSError as error:
        got = type(error).__name__
    time.sleep(0.2)
    seen = f"sent {len(came)} times, {got}"
    print(f"httplib2 {httplib2.__version__}: the server {what}: {seen}")
    return seen


same = [post("closes", lambda: None) == "sent 2 times, 200",
        post("is silent", lambda: time.sleep(3)) == "sent 1 times, TimeoutError"]
sys.exit(httplib2.__version__ != "0.20.4" or not all(same))
PY
PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 main.py
