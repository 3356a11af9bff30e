#!/usr/bin/env bash
# Guess: OkHttp sends a POST once: retryOnConnectionFailure is for addresses that cannot be reached, and an
#   answer goes to the caller as it is.
# Software: Debian packages libokhttp-java 3.13.1-3 and libokio-java 1.16.0-1 (needs Debian 12, a JDK 17 and
#   Node), defaults.
# Seen: a POST that is answered 408, or 503 with "Retry-After: 0", is sent again at once; with any other
#   Retry-After, or none, the 503 is returned. One that was read on a kept connection and then not
#   answered is sent again, too. The caller sees one call.
# Why it matters: Java and Android senders are built on it (Retrofit, Feign). A 408 from a proxy that gave up
#   on a slow handler, and a receiver that restarts after its work, run the event twice at once.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libokhttp-java=3.13.1-3 libokio-java >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
java -version 2>&1 | grep -q '"17' || exit 2
cat > Sender.java <<'JAVA'
import java.io.IOException;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;

public class Sender {
	public static void main(String[] paths) {
		var client = new OkHttpClient();
		for (int i = 1; i < paths.length; i++) {
			var request = new Request.Builder().url(paths[0] + paths[i]).post(RequestBody.create(null, "order")).build();
			try (var response = client.newCall(request).execute()) {
				System.out.println(paths[i] + " " + response.code());
			} catch (IOException e) {
				System.out.println(paths[i] + " " + e.getMessage());
			}
		}
		System.exit(0);
	}
}
JAVA
jars=$dir/usr/share/java/okhttp.jar:$dir/usr/share/java/okio.jar
javac -cp "$jars" -d . Sender.java 2>log || { cat log; exit 2; }
cat > main.js <<'JS'
const http = require("node:http");
const { execFile } = require("node:child_process");

const seen = {};
const places = new WeakMap();
const server = http.createServer((req, res) => req.resume().on("end", () => {
  const place = (places.get(req.socket) ?? 0) + 1;
  places.set(req.socket, place);
  (seen[req.url] ??= []).push(place);
  if (req.url === "/cut" && place > 1) return req.socket.destroy();
  const [, status, retryAfter] = req.url.split("/");
  res.writeHead(Number(status) || 200, retryAfter ? { "Retry-After": retryAfter } : {}).end();
}));
server.listen(0, "127.0.0.1", () => {
  const paths = ["/408", "/503", "/503/1", "/503/0", "/cut"];
  const url = `http://127.0.0.1:${server.address().port}`;
  execFile("java", ["-cp", `${process.argv[2]}:.`, "Sender", url, ...paths], (error, out) => {
    if (error) { console.log(error.message); process.exit(2); }
    for (const path of paths) console.log(`OkHttp 3.13.1: POST ${path} came ${seen[path].length} times`);
    console.log(out);
    const counts = paths.map((path) => seen[path].length).join();
    process.exit(counts === "2,1,1,2,2" && out.includes("/cut 200") ? 0 : 1);
  });
});
JS
timeout 50 node main.js "$jars"
