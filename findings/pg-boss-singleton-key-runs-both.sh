#!/usr/bin/env bash
# Guess: of two jobs that are sent with one singletonKey the second is refused while the first waits or
#   runs, as in pg-boss up to 9; at least they do not run at the same time.
# Software: pg-boss 10.4.2 (npm), a queue with its defaults, on @electric-sql/pglite 0.5.17, which is
#   PostgreSQL in the process; the same was seen with pg-boss 12.38.0.
# Seen: both are taken, and both are fetched at once. The key counts under createQueue's policies alone: with
#   "short" the second is refused until the first one runs, and runs beside it; with "singleton" it runs
#   after it. send returns null for what it refuses.
# Why it matters: the event ID, or the order, of a webhook as singletonKey looks like what makes its job
#   run once, or alone. After the upgrade to 10 it does nothing, and nothing says so.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > package.json <<'JSON'
{"private": true, "type": "module", "dependencies": {"pg-boss": "10.4.2", "@electric-sql/pglite": "0.5.17"}}
JSON
cat > finding.js <<'JS'
import { PGlite } from '@electric-sql/pglite';
import PgBoss from 'pg-boss';

const postgres = new PGlite();
const executeSql = async (text, values = []) =>
  (values.length ? postgres.query(text, values) : (await postgres.exec(text)).at(-1));
const boss = new PgBoss({ db: { executeSql }, supervise: false, schedule: false });
await boss.start();
const want = { standard: ['taken, taken', '1, 2'], short: ['taken, refused', '1'], singleton: ['taken, taken', '1'] };
let same = true;
for (const policy of ['standard', 'short', 'singleton']) {
  await boss.createQueue(policy, policy === 'standard' ? undefined : { policy });
  const sent = [];
  for (const event of [1, 2]) {
    sent.push(await boss.send(policy, { event }, { singletonKey: 'order-7' }) ? 'taken' : 'refused');
  }
  const fetched = (await boss.fetch(policy, { batchSize: 10 })).map((job) => job.data.event).sort();
  const seen = [sent.join(', '), fetched.join(', ')];
  console.log(`pg-boss 10.4.2, ${policy}: two jobs of one singletonKey: ${seen[0]}; at work at once: ${seen[1]}`);
  same = same && seen.join() === want[policy].join();
}
process.exit(same ? 0 : 1);
JS
npm install --silent --no-audit --no-fund --ignore-scripts >log 2>&1 || { cat log; exit 2; }
timeout 50 node finding.js
