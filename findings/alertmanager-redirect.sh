#!/usr/bin/env bash
# Guess: a webhook of Alertmanager that is answered 301 is posted to the new address, or fails.
# Software: Debian package prometheus-alertmanager 0.25.0-1+b4 (needs Debian 12 and Node).
# Seen: the new address gets a GET without a body; its 200 counts as delivered.
# Why it matters: a receiver moved to another path or to https loses every alert, and the
#   metric of failed notifications stays 0.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download prometheus-alertmanager=0.25.0-1+b4 >log 2>&1 || { cat log; exit 2; }
dpkg -x prometheus-alertmanager_*.deb .
cat > main.js <<'JS'
const http = require("node:http");
const fs = require("node:fs");
const { spawn } = require("node:child_process");

const requests = [];
const receiver = http.createServer((req, res) => {
  let bytes = 0;
  req.on("data", (data) => { bytes += data.length; });
  req.on("end", () => {
    requests.push(`${req.method} ${req.url} ${bytes ? "with" : "without"} body`);
    res.writeHead(req.url === "/old" ? 301 : 200, { Location: "/new" });
    res.end();
    if (req.url === "/new") res.on("finish", () => judge().catch(fail));
  });
});
const fail = (error) => { console.log(error.message); manager.kill(); process.exit(2); };
let manager, api;

// judge reads the metrics until Alertmanager has counted the notification.
async function judge() {
  let metrics, count;
  do {
    metrics = await (await fetch(api + "/metrics")).text();
    count = (name) => metrics.match(new RegExp(`^${name}{integration="webhook"} (.*)$`, "m"))[1];
  } while (count("alertmanager_notification_requests_total") === "0");
  const failed = count("alertmanager_notifications_failed_total");
  console.log(`alertmanager 0.25.0: ${requests.join(", ")}; failed notifications: ${failed}`);
  manager.kill();
  process.exit(requests.join() === "POST /old with body,GET /new without body" && failed === "0" ? 0 : 1);
}

receiver.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${receiver.address().port}/old`;
  fs.writeFileSync("config.yml", `route: {receiver: hook, group_wait: 10ms}
receivers: [{name: hook, webhook_configs: [{url: "${url}"}]}]
`);
  manager = spawn("usr/bin/prometheus-alertmanager", ["--config.file=config.yml", "--storage.path=data",
    "--web.listen-address=127.0.0.1:0", "--cluster.listen-address="], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  manager.stderr.on("data", (data) => {
    log += data;
    const address = log.match(/msg="Listening on" address=(\S+)/);
    if (!address || api) return;
    api = "http://" + address[1];
    fetch(api + "/api/v2/alerts", { method: "POST", headers: { "Content-Type": "application/json" },
      body: '[{"labels":{"alertname":"Down"}}]' }).catch(fail);
  });
  setTimeout(() => fail(new Error("no redirect was followed within 40 s")), 40000);
});
JS
timeout 50 node main.js
