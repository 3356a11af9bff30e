#!/usr/bin/env bash
# Guess: a form that is longer than Tomcat takes is refused (413 or 400), or getParameter throws.
# Software: Debian packages libtomcat10-embed-java and libtomcat10-java 10.1.60-1~deb12u1 (needs Debian
#   12, a JDK 17 and Node), defaults: maxPostSize 2 MiB.
# Seen: above 2 MiB getParameter returns null for each field, also for one that comes first, nothing is
#   thrown, and the servlet answers 200. A form of 1 MiB is whole.
# Why it matters: mail services post mails as forms. A handler sees an event without a type, which most
#   leave alone, and the sender is told that it arrived. (FailedRequestFilter refuses it.)
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
version=10.1.60-1~deb12u1
apt-get download "libtomcat10-embed-java=$version" "libtomcat10-java=$version" >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
java -version 2>&1 | grep -q '"17' || exit 2
cat > Hook.java <<'JAVA'
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.util.logging.LogManager;
import org.apache.catalina.startup.Tomcat;

public class Hook extends HttpServlet {
	@Override
	protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
		var text = request.getParameter("text");
		response.getWriter().print("event " + request.getParameter("event") + ", text of "
			+ (text == null ? "nothing" : text.length() + " bytes"));
	}

	public static void main(String[] args) throws Exception {
		LogManager.getLogManager().reset();
		var tomcat = new Tomcat();
		tomcat.setBaseDir("work");
		tomcat.setPort(0);
		var context = tomcat.addContext("", new File(".").getAbsolutePath());
		Tomcat.addServlet(context, "hook", new Hook());
		context.addServletMappingDecoded("/hook", "hook");
		tomcat.getConnector();
		tomcat.start();
		System.out.println(tomcat.getConnector().getLocalPort());
		System.in.read();
		System.exit(0);
	}
}
JAVA
jars=$(find "$dir/usr" -name '*.jar' | tr '\n' ':')
javac -cp "$jars" -d . Hook.java 2>log || { cat log; exit 2; }
cat > main.js <<'JS'
const { spawn } = require("node:child_process");

const tomcat = spawn("java", ["-cp", process.argv[2] + ".", "Hook"], { stdio: ["pipe", "pipe", "ignore"] });
tomcat.stdout.once("data", async (line) => {
  const seen = [];
  for (const bytes of [1 << 20, 3 << 20]) {
    const answer = await fetch(`http://127.0.0.1:${parseInt(line, 10)}/hook`, { method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" }, body: `event=paid&text=${"x".repeat(bytes)}` });
    seen.push(`${answer.status} ${await answer.text()}`);
    console.log(`Tomcat 10.1.60: a form with a text of ${bytes} bytes: ${seen.at(-1)}`);
  }
  tomcat.kill();
  process.exit(seen.join() === "200 event paid, text of 1048576 bytes,200 event null, text of nothing" ? 0 : 1);
});
tomcat.on("exit", () => process.exit(2));
JS
timeout 50 node main.js "$jars"
