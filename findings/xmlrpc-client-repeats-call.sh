#!/usr/bin/env bash
# Guess: xmlrpc.client of Python sends a call once; if it sends one again, then on a kept connection
#   that had ended before the call.
# Software: Python 3.11's standard library (needs a Python 3.11, such as Debian 12's).
# Seen: a call that was read and then not answered is sent again at once, also the first one of a
#   connection. The second failure is raised, or the second result returned; nothing tells that there
#   were two.
# Why it matters: XML-RPC is a POST for what no one wants twice (Odoo's orders and invoices, pings of
#   weblogs). A server that restarts between its work and its answer does it twice. A request ID that
#   the caller puts into each call's parameters is the same in both.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || exit 2
cat > main.py <<'PY'
import socket, sys, threading, xmlrpc.client

RESULT = b"<?xml version='1.0'?><methodResponse><params><param><value><int>7</int></value></param></params></methodResponse>"


def server(unanswered):
    """Reads calls, and answers those after the first so many. Returns its port and what it has read."""
    listener, calls = socket.create_server(("127.0.0.1", 0)), []

    def serve():
        while True:
            connection, _ = listener.accept()
            text = b""
            while not text.endswith(b"</methodCall>\n"):
                text += connection.recv(4096)
            calls.append(text)
            if len(calls) > unanswered:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nConnection: close\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(RESULT), RESULT))
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1], calls


def call(unanswered):
    port, calls = server(unanswered)
    try:
        got = xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}/").invoice("order 7")
    except OSError as error:
        got = type(error).__name__
    seen = f"sent {len(calls)} times, {got}"
    print(f"Python {sys.version.split()[0]}: {unanswered} not answered: {seen}")
    return seen


same = [call(0) == "sent 1 times, 7", call(1) == "sent 2 times, 7", call(9) == "sent 2 times, RemoteDisconnected"]
sys.exit(not all(same))
PY
timeout 50 python3 main.py
