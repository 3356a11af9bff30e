#!/usr/bin/env bash
# Guess: Qt's QNetworkAccessManager sends a POST once. If it repeats one, then on a kept connection
#   alone, whose end may have come before the request.
# Software: Debian packages python3-pyqt5 5.15.9+dfsg-1, libqt5network5 and libqt5core5a
#   5.15.8+dfsg-11+deb12u3 (needs Debian 12 and its Python), defaults.
# Seen: a POST that was read and then not answered is sent again at once, also the first one of a
#   connection. The second failure is the error, or the second answer the reply; nothing tells that
#   there were two.
# Why it matters: tills, kiosks and sync clients are written with Qt. A server that restarts between its
#   work and its answer does the work twice.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-pyqt5=5.15.9+dfsg-1 libqt5network5=5.15.8+dfsg-11+deb12u3 libqt5core5a=5.15.8+dfsg-11+deb12u3 \
  libqt5dbus5 python3-pyqt5.sip libproxy1v5 libdouble-conversion3 libpcre2-16-0 libmd4c0 libicu72 libglib2.0-0 \
  libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libkeyutils1 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.py <<'PY'
import socket
import sys
import threading

from PyQt5.QtCore import QT_VERSION_STR, QCoreApplication, QUrl
from PyQt5.QtNetwork import QNetworkAccessManager, QNetworkRequest

seen = []  # for each request its place on its connection


def receive(connection, answers):
    place = 0
    with connection, connection.makefile("rb") as lines:
        while lines.readline():
            length = 0
            while (line := lines.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            lines.read(length)
            place += 1
            seen.append(place)
            if place > answers:
                return
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def serve(answers):
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            threading.Thread(target=receive, args=(listener.accept()[0], answers), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


app = QCoreApplication([])
manager = QNetworkAccessManager()


def post(port):
    request = QNetworkRequest(QUrl(f"http://127.0.0.1:{port}/"))
    request.setHeader(QNetworkRequest.ContentTypeHeader, "application/json")
    reply = manager.post(request, b'{"order":7}')
    reply.finished.connect(app.quit)
    app.exec()
    return reply.attribute(QNetworkRequest.HttpStatusCodeAttribute) or reply.errorString()


got = [post(serve(0))]
never, seen = list(seen), []
once = serve(1)
got += [post(once), post(once)]
print(f"Qt {QT_VERSION_STR}: a POST to a server that never answers came {len(never)} times: {got[0]}")
print(f"two POSTs to one that ends each connection at its second: places on their connections {seen}: {got[1:]}")
sys.exit(0 if (never, seen, got) == ([1, 1], [1, 2, 1], ["Connection closed", 200, 200]) else 1)
PY
lib=usr/lib/x86_64-linux-gnu
LD_LIBRARY_PATH=$lib:lib/x86_64-linux-gnu PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 main.py
