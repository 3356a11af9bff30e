#!/usr/bin/env bash
# Guess: express.json() reads a body of application/cloudevents+json, because its type ends in +json; or
#   it answers 415, as it does for a charset that it does not know.
# Software: express 4.22.3 and 5.3.0 (npm), express.json() with its defaults.
# Seen: it reads application/json alone. For any other type the handler runs with the body {} (express 4)
#   or undefined (express 5), and answers 200. express.json({ type: ["application/json", "+json"] }) reads.
# Why it matters: an event in CloudEvents' structured mode, of ActivityPub (application/activity+json), of
#   SCIM or JSON:API counts as delivered, and what the handler got is empty. A handler that takes the
#   event's ID from it takes all events for one without.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts four@npm:express@4.22.3 five@npm:express@5.3.0 >/dev/null || exit 2
cat > main.js <<'JS'
const post = async (express, reader, type) => {
  const app = express();
  app.use(reader);
  app.post("/hook", (req, res) => res.send(`body ${JSON.stringify(req.body)}`));
  const server = await new Promise((listening) => { const s = app.listen(0, "127.0.0.1", () => listening(s)); });
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/hook`,
    { method: "POST", headers: { "content-type": type }, body: '{"id":"1"}' });
  const text = await answer.text();
  server.close();
  return `${answer.status} ${text}`;
};

(async () => {
  let same = true;
  for (const [version, express, left] of [["4.22.3", require("four"), "{}"], ["5.3.0", require("five"), "undefined"]]) {
    const both = express.json({ type: ["application/json", "+json"] });
    for (const [what, reader, type, want] of [
      ["json()", express.json(), "application/json", '200 body {"id":"1"}'],
      ["json()", express.json(), "application/cloudevents+json", `200 body ${left}`],
      ["json()", express.json(), "application/activity+json", `200 body ${left}`],
      ["with +json", both, "application/cloudevents+json", '200 body {"id":"1"}'],
    ]) {
      const seen = await post(express, reader, type);
      console.log(`express ${version}, ${what}: ${type}: ${seen}`);
      same = same && seen === want;
    }
  }
  process.exit(same ? 0 : 1);
})();
JS
timeout 50 node main.js
