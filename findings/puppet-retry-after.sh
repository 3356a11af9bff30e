#!/usr/bin/env bash
# Guess: a report that is answered "503 Service Unavailable" with Retry-After is sent again after
#   the pause, as Puppet's log says ("Sleeping for 2 seconds before retrying the request").
# Software: Debian package puppet 7.23.0-1+deb12u1 (needs Debian 12, its dependencies and Node).
# Seen: puppet sleeps for the two seconds, fails with "attempt to read body out of block", and ends
#   without a second request. Without Retry-After it does not sleep.
# Why it matters: the report is lost, and each refusal delays the run by what the service asked for.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
command -v puppet >/dev/null && [ "$(puppet --version)" = 7.23.0 ] || { echo "puppet 7.23.0 is not installed"; exit 2; }
cat > main.js <<'JS'
const http = require("node:http");
const { spawn } = require("node:child_process");

let requests = 0;
const receiver = http.createServer((req, res) => req.resume().on("end", () => {
  requests++;
  res.writeHead(503, { "Retry-After": "2" });
  res.end("later");
}));
receiver.listen(0, "127.0.0.1", () => {
  const puppet = spawn("puppet", ["apply", "-e", "notify {'hello':}", "--confdir", process.cwd() + "/conf",
    "--vardir", process.cwd() + "/var", "--reports", "http", "--color", "false",
    "--reporturl", `http://127.0.0.1:${receiver.address().port}/`]);
  let log = "";
  for (const stream of [puppet.stdout, puppet.stderr]) stream.on("data", (data) => { log += data; });
  puppet.on("close", () => {
    const slept = log.includes("Sleeping for 2 seconds before retrying the request");
    const failed = log.includes("attempt to read body out of block");
    console.log(`puppet 7.23.0: ${requests} request; says that it sleeps and retries: ${slept}; ` +
      `fails with "attempt to read body out of block": ${failed}`);
    process.exit(requests === 1 && slept && failed ? 0 : 1);
  });
});
JS
timeout 60 node main.js
