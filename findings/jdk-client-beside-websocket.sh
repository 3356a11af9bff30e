#!/usr/bin/env bash
# Guess: a POST of Java's HttpClient to http:// reaches the handler of a Node server, whether or not that server
#   has a WebSocket endpoint, too, at another path.
# Software: java.net.http of OpenJDK 17 (needs a JDK 17, such as Debian 12's, and Node), ws 8.23.0 (npm), defaults.
# Seen: with a WebSocketServer on the server, at whatever path, none does: 405. The client offers "Upgrade: h2c"
#   in each request to a host, also with a body, until one has been taken up; Node hands whatever has an
#   Upgrade to the WebSocket library. With version(HTTP_1_1) at the client all reach it.
# Why it matters: the live view that is added to a service ends the deliveries of each sender in Java that
#   posts by the JDK's client without TLS, and no other's.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts ws@8.23.0 >/dev/null || exit 2
cat > Post.java <<'JAVA'
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class Post {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.valueOf(args[1])).build();
        for (int i = 0; i < 2; i++) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(args[0]))
                .POST(HttpRequest.BodyPublishers.ofString("{\"id\":\"evt_" + i + "\"}")).build();
            System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode() + " ");
        }
    }
}
JAVA
javac Post.java || exit 2
cat > main.js <<'JS'
const { execFile } = require("node:child_process");
const http = require("node:http");
const { WebSocketServer } = require("ws");

async function deliver(live, version = "HTTP_2") {
  let ran = 0;
  const server = http.createServer((request, response) => {
    request.resume().on("end", () => { ran++; response.end("ok"); });
  });
  if (live) new WebSocketServer({ server, ...live });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${server.address().port}/hooks`;
  const out = await new Promise((done) => execFile("java", ["-cp", ".", "Post", url, version], (_, text) => done(text.trim())));
  server.close();
  server.closeAllConnections();
  return `${out}, ${ran} ran`;
}

(async () => {
  const got = [await deliver(), await deliver({}), await deliver({ path: "/live" }), await deliver({}, "HTTP_1_1")];
  const want = ["200 200, 2 ran", "405 405, 0 ran", "405 405, 0 ran", "200 200, 2 ran"];
  const what = ["no WebSocket", "ws", "ws at /live", "ws, client with HTTP_1_1"];
  what.forEach((line, i) => console.log(`JDK 17, two POSTs, Node with ${line}: ${got[i]}`));
  process.exit(got.every((line, i) => line === want[i]) ? 0 : 1);
})();
JS
timeout 50 node main.js
