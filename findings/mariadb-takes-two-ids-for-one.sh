#!/usr/bin/env bash
# Guess: in a table of the event IDs that were seen, with a VARCHAR primary key, two IDs are two rows.
#   INSERT IGNORE ignores duplicates, and an ID that is too long for the column is an error, because
#   MariaDB is in strict mode by default.
# Software: Debian packages mariadb-server-core and mariadb-client-core 1:10.11.19-0+deb12u1 (needs
#   Debian 12), defaults but for utf8mb4, which Debian sets.
# Seen: the default collation compares without case, accents and blanks at the end: evt_1NG8DuA,
#   evt_1NG8Dua and evt_1NG8Duä are one. INSERT IGNORE cuts an ID that is too long, with a warning, so
#   that the next one with the same beginning is its duplicate; plain INSERT refuses it. With COLLATE
#   utf8mb4_bin the three are three.
# Why it matters: the IDs of Stripe and of many others tell events apart by the case of their letters:
#   the second of two is taken for a repeat of the first and is lost, once in very many.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; cd "$dir"
trap 'rm -rf "$dir"' EXIT
version=1:10.11.19-0+deb12u1
apt-get download "mariadb-server-core=$version" "mariadb-client-core=$version" mariadb-server="$version" liburing2 libaio1 \
  >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
mkdir data
usr/sbin/mariadbd --no-defaults --user="$(id -un)" --datadir="$dir/data" --lc-messages-dir="$dir/usr/share/mysql" \
  --character-set-server=utf8mb4 --skip-grant-tables --skip-networking --socket="$dir/socket" 2>server.log &
client=(usr/bin/mariadb --no-defaults --socket="$dir/socket" --default-character-set=utf8mb4 --force -N -B)
trap '"${client[@]}" -e shutdown >/dev/null 2>&1 || true; wait; rm -rf "$dir"' EXIT
until "${client[@]}" -e 'SELECT 1' >/dev/null 2>&1; do
  kill -0 $! 2>/dev/null || { cat server.log; exit 2; }
  sleep 0.2
done
cat > seen.sql <<'SQL'
CREATE DATABASE shop; USE shop;
CREATE TABLE seen (id VARCHAR(20) PRIMARY KEY);
CREATE TABLE exact (id VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY);
INSERT IGNORE INTO seen VALUES ('evt_1NG8DuA'); SELECT 'evt_1NG8DuA', ROW_COUNT();
INSERT IGNORE INTO seen VALUES ('evt_1NG8Dua'); SELECT 'evt_1NG8Dua', ROW_COUNT();
INSERT IGNORE INTO seen VALUES ('evt_1NG8Duä'); SELECT 'evt_1NG8Duä', ROW_COUNT();
INSERT IGNORE INTO seen VALUES ('evt_1NG8Dua '); SELECT 'evt_1NG8Dua and a blank', ROW_COUNT();
INSERT IGNORE INTO seen VALUES ('order-4711-paid-attempt-1'); SELECT 'order-4711-paid-attempt-1', ROW_COUNT();
INSERT IGNORE INTO seen VALUES ('order-4711-paid-attempt-2'); SELECT 'order-4711-paid-attempt-2', ROW_COUNT();
INSERT INTO seen VALUES ('order-4711-paid-attempt-3');
INSERT IGNORE INTO exact VALUES ('evt_1NG8DuA'), ('evt_1NG8Dua'), ('evt_1NG8Duä'); SELECT 'three with utf8mb4_bin', ROW_COUNT();
SQL
"${client[@]}" <seen.sql 2>&1 | grep -v -e '^--' -e '^INSERT' -e '^$' >out || true
sed 's/^/MariaDB 10.11.19: /' out
diff - out >/dev/null <<'OUT' || exit 1
evt_1NG8DuA	1
evt_1NG8Dua	0
evt_1NG8Duä	0
evt_1NG8Dua and a blank	0
order-4711-paid-attempt-1	1
order-4711-paid-attempt-2	0
ERROR 1406 (22001) at line 10: Data too long for column 'id' at row 1
three with utf8mb4_bin	3
OUT
