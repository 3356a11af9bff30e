#!/usr/bin/env bash
# Guess: a SET with NX (an event ID that is to be taken once) whose answer is lost with the connection ends with
#   an error: unknown. "Not set" means that another one was first. An RPUSH pushes once.
# Software: github.com/redis/go-redis/v9 v9.23.0; ioredis 6.0.0 (npm); Debian packages ruby-redis 4.8.0-1 and
#   redis-server 5:7.0.15-1~deb12u10 (needs Debian 12, Node and Ruby), defaults.
# Seen: "not set" from all three, though the key has the caller's value. Each connects anew and sends the
#   command again by itself, and meets its own key. An RPUSH, sent once, is in the list twice.
# Why it matters: a worker that marks an event so before it runs it takes the event for one that runs
#   elsewhere: it never runs, and the key refuses each later delivery. A queue in a list has the job twice.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; cd "$dir"
trap 'kill "${pid:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT
apt-get download ruby-redis=4.8.0-1 redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 liblzf1 libjemalloc2 \
  liblua5.1-0 lua-cjson lua-bitop libhiredis0.14 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/redis-server --port 0 --unixsocket "$dir/redis" --save '' >redis.log 2>&1 & pid=$!
for _ in {1..200}; do [ -S redis ] && break; sleep 0.1; done
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts ioredis@6.0.0 >/dev/null || exit 2
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, client := context.Background(), redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	set, err := client.SetNX(ctx, "cut:go", "me", 0).Result()
	fmt.Println("set:", set, err)
	_, err = client.RPush(ctx, "cut:list:go", "job").Result()
	fmt.Println("push:", err)
}
GO
cat > main.rb <<'RB'
require "redis"
client = Redis.new(host: "127.0.0.1", port: ARGV[0].to_i)
puts "set: #{client.set("cut:rb", "me", nx: true)}"
client.rpush("cut:list:rb", "job")
puts "push: no error"
RB
cat > main.js <<'JS'
const { execFile } = require("node:child_process");
const net = require("node:net");
const Redis = require("ioredis");

// The first connection that names a key "cut:…" is cut when the server has answered, before the client hears of it.
const cut = new Set();
const proxy = net.createServer((client) => {
  const server = net.connect(`${__dirname}/redis`);
  let ends = false;
  client.on("data", (data) => {
    const key = /cut:[a-z:]+/.exec(data.toString())?.[0];
    if (key && !cut.has(key)) { cut.add(key); ends = true; }
    server.write(data);
  });
  server.on("data", (data) => ends ? client.destroy() : client.write(data));
  for (const socket of [client, server]) socket.on("error", () => {}).on("close", () => { client.destroy(); server.destroy(); });
});

(async () => {
  await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
  const { port } = proxy.address();
  const run = (...command) => new Promise((done) => execFile(command[0], command.slice(1), (error, text, stderr) => {
    done((text + (error ? stderr : "")).trim().split("\n").join("; "));
  }));
  const store = new Redis(`${__dirname}/redis`);
  const client = new Redis({ host: "127.0.0.1", port });
  client.on("error", () => {});
  const said = {
    go: await run("./finding", String(port)),
    rb: await run("ruby", "-I", "usr/share/rubygems-integration/all/gems/redis-4.8.0/lib", "main.rb", String(port)),
    js: `set: ${await client.set("cut:js", "me", "NX")}; push: ${await client.rpush("cut:list:js", "job") && "no error"}`,
  };
  const want = { go: "set: false <nil>; push: <nil>", rb: "set: false; push: no error", js: "set: null; push: no error" };
  const names = { go: "go-redis v9.23.0", rb: "redis-rb 4.8.0", js: "ioredis 6.0.0" };
  let same = true;
  for (const [key, name] of Object.entries(names)) {
    const value = await store.get(`cut:${key}`), pushed = await store.llen(`cut:list:${key}`);
    console.log(`${name}: ${said[key]}; the key's value: ${value}; in the list ${pushed} times`);
    same = same && said[key] === want[key] && value === "me" && pushed === 2;
  }
  process.exit(same ? 0 : 1);
})();
JS
go get github.com/redis/go-redis/v9@v9.23.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 node main.js
