#!/usr/bin/env bash
# Guess: `with client.lock("order-7"):` waits until the lock is free, as Python's own locks do, or
#   raises, because acquire() says at once whether it has the lock.
# Software: Debian packages python3-etcd3gw 2.0.0-2 and etcd-server 3.4.23-4+b4 (needs Debian 12 and
#   its Python).
# Seen: neither. The block is entered while another one is in it: __enter__ drops what acquire()
#   returned. lock.is_acquired() says False inside.
# Why it matters: two workers that wrap one order's events in it run them at the same time, and
#   nothing says so.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; cd "$dir"
trap 'kill "${pid:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT
apt-get download python3-etcd3gw=2.0.0-2 etcd-server=3.4.23-4+b4 python3-futurist python3-pbr python3-requests python3-urllib3 \
  python3-chardet python3-idna python3-certifi python3-six >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
read -r client peer < <(/usr/bin/python3 -c '
import socket
pair = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in pair))')
usr/bin/etcd --data-dir data --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
  --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
  --initial-cluster "default=http://127.0.0.1:$peer" >etcd.log 2>&1 & pid=$!
cat > main.py <<'PY'
import sys
import threading
import time

from etcd3gw.client import Etcd3Client


def lock():
    return Etcd3Client(port=int(sys.argv[1]), api_path="/v3/").lock("order-7", ttl=60)


until = time.monotonic() + 20
while True:
    try:
        Etcd3Client(port=int(sys.argv[1]), api_path="/v3/").status()
        break
    except Exception as error:
        if time.monotonic() > until:
            print("etcd does not answer:", error)
            sys.exit(2)
        time.sleep(0.1)

inside, entered, leave = [], threading.Event(), threading.Event()


def hold():
    with lock() as mine:
        inside.append(mine.is_acquired())
        entered.set()
        leave.wait(20)


def enter():
    with lock() as mine:
        inside.append(mine.is_acquired())


holder, second = threading.Thread(target=hold), threading.Thread(target=enter)
holder.start()
entered.wait(20)
second.start()
second.join(5)
waits = second.is_alive()
leave.set()
holder.join()
second.join()
print(f"etcd3gw 2.0.0: while one block is in, a second one {'waits' if waits else 'enters'}; is_acquired() inside: {inside}")
sys.exit(0 if not waits and inside == [True, False] else 1)
PY
PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 main.py "$client"
