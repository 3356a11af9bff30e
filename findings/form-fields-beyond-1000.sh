#!/usr/bin/env bash
# Guess: of a form with 1500 fields all arrive, or the request is refused.
# Software: querystring of Node 20, qs 6.17.1 (npm), PHP 8.2 (needs Debian 12's php-cli), defaults.
# Seen: querystring.parse and qs.parse return 1000, $_POST of PHP has 1001; the others are gone without an
#   error (PHP logs a warning), and the script answers 200. URLSearchParams has 1500.
# Why it matters: an order of some hundred lines, posted as a form (line_items[0][sku]=…), loses its last
#   lines and counts as delivered. (maxKeys, parameterLimit, max_input_vars.)
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
php -r 'exit(strncmp(PHP_VERSION, "8.2.", 4) ? 1 : 0);' || exit 2
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts qs@6.17.1 >/dev/null || exit 2
echo '<?php echo count($_POST), " fields, the last ", array_key_last($_POST);' > hook.php
cat > main.js <<'JS'
const net = require("node:net");
const querystring = require("node:querystring");
const { spawn } = require("node:child_process");
const qs = require("qs");

const form = Array.from({ length: 1500 }, (_, i) => `field${i}=1`).join("&");
const told = (fields) => `${fields.length} fields, the last ${fields.at(-1)}`;
const free = () => new Promise((done) => {
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});
const inPHP = async () => {
  const port = await free();
  const php = spawn("php", ["-n", "-S", `127.0.0.1:${port}`, "hook.php"], { stdio: "ignore" });
  try {
    for (let tries = 100; ; tries--) {
      try {
        const answer = await fetch(`http://127.0.0.1:${port}/hook`,
          { method: "POST", headers: { "content-type": "application/x-www-form-urlencoded" }, body: form });
        return `${answer.status}, ${(await answer.text()).trim().split("\n").at(-1)}`;
      } catch (e) {
        if (tries === 0) throw e;
        await new Promise((later) => setTimeout(later, 50));
      }
    }
  } finally { php.kill(); }
};

(async () => {
  const seen = {
    [`querystring of Node ${process.version}`]: told(Object.keys(querystring.parse(form))),
    "qs 6.17.1": told(Object.keys(qs.parse(form))),
    "PHP 8.2": await inPHP(),
    "URLSearchParams": told([...new URLSearchParams(form).keys()]),
  };
  for (const [what, got] of Object.entries(seen)) console.log(`${what}: ${got}`);
  const want = ["1000 fields, the last field999", "1000 fields, the last field999", "200, 1001 fields, the last field1000",
    "1500 fields, the last field1499"];
  process.exit(Object.values(seen).join() === want.join() ? 0 : 1);
})();
JS
timeout 50 node main.js
