#!/usr/bin/env bash
# Guess: java.net.http.HttpClient with expectContinue(true) sends the body after a short wait when no "100
#   Continue" comes, as curl does after a second: RFC 9110, section 10.1.1, has a client not wait for ever.
# Software: java.net.http of OpenJDK 17 (needs a JDK 17, such as Debian 12's).
# Seen: it waits until the time limit of the request, or for ever where none is set, and never sends the
#   body. With a 100 the same request is 200.
# Why it matters: PHP's and Ruby's own servers (php -S, WEBrick, Thin) and other small ones send no 100.
#   A sender that asks for one delivers nothing to them, and its thread hangs with each event.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
java -version 2>&1 | grep -q '"17' || exit 2
cat > Main.java <<'JAVA'
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

public class Main {
	// serve reads a head and a body of five bytes, with a 100 between them or none, and offers how many came.
	static void serve(ServerSocket listener, boolean with100, SynchronousQueue<Integer> came) {
		try (var socket = listener.accept()) {
			var in = socket.getInputStream();
			var head = new StringBuilder();
			while (head.indexOf("\r\n\r\n") < 0) {
				head.append((char) in.read());
			}
			if (with100) {
				socket.getOutputStream().write("HTTP/1.1 100 Continue\r\n\r\n".getBytes());
			}
			var body = in.readNBytes(5).length;
			socket.getOutputStream().write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".getBytes());
			came.offer(body, 5, TimeUnit.SECONDS);
		} catch (IOException | InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	public static void main(String[] args) throws Exception {
		var same = true;
		for (var with100 : new boolean[] {true, false}) {
			var listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
			var came = new SynchronousQueue<Integer>();
			new Thread(() -> serve(listener, with100, came)).start();
			var uri = URI.create("http://127.0.0.1:" + listener.getLocalPort() + "/");
			var request = HttpRequest.newBuilder(uri).expectContinue(true).version(HttpClient.Version.HTTP_1_1)
				.timeout(Duration.ofSeconds(8)).POST(HttpRequest.BodyPublishers.ofString("order")).build();
			String end;
			try {
				end = "" + HttpClient.newHttpClient().send(request, BodyHandlers.discarding()).statusCode();
			} catch (IOException e) {
				end = e.getMessage();
			}
			var bytes = came.poll(5, TimeUnit.SECONDS);
			System.out.println("Java 17, " + (with100 ? "a 100" : "no 100") + ": " + bytes + " bytes of the body came, " + end);
			same &= (end + bytes).equals(with100 ? "2005" : "request timed out0");
		}
		System.exit(same ? 0 : 1);
	}
}
JAVA
javac -d . Main.java || exit 2
timeout 50 java -cp . Main
