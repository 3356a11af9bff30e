#!/usr/bin/env bash
# Guess: a Lua script in Redis that reads an event by cjson.decode has its numbers as they came, up to 2^53, as
#   JavaScript has.
# Software: Debian package redis-server 5:7.0.15-1~deb12u10 (needs Debian 12).
# Seen: it reads them so, and writes 14 digits: 123456789012345 becomes 1.2345678901234e+14, both in
#   cjson.encode and where it is joined to a text; of the IDs …341 to …349 the key "seen:" .. id makes two. An
#   empty list comes out as {}. ("%.0f" writes all digits.)
# Why it matters: long numeric IDs, and times in microseconds, have 15 digits and more: a script that takes an
#   event's ID once takes five events for one, and a job that it passes on has another ID.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; cd "$dir"
trap 'kill "${pid:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT
apt-get download redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 liblzf1 libjemalloc2 liblua5.1-0 lua-cjson lua-bitop \
  libhiredis0.14 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu
usr/bin/redis-server --port 0 --unixsocket "$dir/redis" --save '' >redis.log 2>&1 & pid=$!
for _ in {1..200}; do [ -S redis ] && break; sleep 0.1; done
run() { timeout 20 usr/bin/redis-cli -s redis "$@"; }
again=$(run eval 'return cjson.encode(cjson.decode(ARGV[1]).lines)' 0 '{"lines": [{"id": 123456789012345}, []]}')
take='return redis.call("SET", "seen:" .. cjson.decode(ARGV[1]).id, 1, "NX") and "new" or "seen"'
all=$(for n in 1 2 3 4 5 6 7 8 9; do run eval "$take" 0 "{\"id\": 12345678901234$n}"; done | tr '\n' ' ')
exact=$(run eval 'return string.format("%.0f", cjson.decode(ARGV[1]).id)' 0 '{"id": 123456789012345}')
echo "Redis 7.0.15: [{\"id\": 123456789012345}, []] read and written by cjson: $again"
echo "SET NX of nine events, IDs 123456789012341 to …349: $all"
echo "the same ID by %.0f: $exact"
[ "$again" = '[{"id":1.2345678901234e+14},{}]' ] && [ "$exact" = 123456789012345 ] && [ "$(grep -o new <<<"$all" | wc -l)" = 2 ]
