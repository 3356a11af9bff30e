#!/usr/bin/env bash
# Guess: java.net.HttpURLConnection sends a POST once. If it repeats one, then on a kept connection
#   alone, whose end may have come before the request.
# Software: the java.net of OpenJDK 17 (needs a JDK 17, such as Debian 12's, and Node), defaults.
# Seen: a POST that was read and then not answered is sent again at once, also where it was the first
#   on its connection. The second failure is thrown, or the second answer returned; nothing tells
#   that there were two. With -Dsun.net.http.retryPost=false it is sent once.
# Why it matters: each receiver that ends, or whose front closes, after its work and before its answer
#   runs the event twice, from any Java program that posts with the JDK's older client.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
version=$(java -version 2>&1 | sed -n '1s/.*"\(17[^"]*\)".*/\1/p'); [ -n "$version" ] || exit 2
cat > Send.java <<'JAVA'
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URL;

public class Send {
	public static void main(String[] args) throws Exception {
		var connection = (HttpURLConnection) new URL(args[0]).openConnection();
		connection.setDoOutput(true);
		connection.setRequestMethod("POST");
		connection.getOutputStream().write("{\"id\":1}".getBytes());
		try {
			System.out.print(connection.getResponseCode());
		} catch (IOException e) {
			System.out.print(e.getMessage());
		}
	}
}
JAVA
javac -Xlint:-options -d . Send.java || exit 2
cat > main.js <<'JS'
const net = require("node:net");
const { execFile } = require("node:child_process");

// post returns how often a POST came, and what its sender got, where the first so many are read and not answered.
const post = (unanswered, ...flags) => new Promise((done) => {
  let came = 0;
  const receiver = net.createServer((socket) => {
    socket.on("error", () => {});
    let request = "";
    socket.on("data", (bytes) => {
      request += bytes;
      if (!request.endsWith('{"id":1}')) return;
      if (++came <= unanswered) socket.end();
      else socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
  }).listen(0, "127.0.0.1", () => execFile("java", [...flags, "-cp", ".", "Send",
    `http://127.0.0.1:${receiver.address().port}/hook`], (_, output) => {
    receiver.close();
    const seen = `sent ${came} times, ${output}`;
    console.log(`JDK ${process.argv[2]} ${flags.join(" ")}: ${unanswered} not answered: ${seen}`);
    done(seen);
  }));
});

(async () => {
  const one = await post(1);
  const all = await post(9);
  const off = await post(9, "-Dsun.net.http.retryPost=false");
  process.exit(one === "sent 2 times, 200" && all === "sent 2 times, Unexpected end of file from server" &&
    off === "sent 1 times, Unexpected end of file from server" ? 0 : 1);
})();
JS
timeout 50 node main.js "$version"
