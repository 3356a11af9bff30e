#!/usr/bin/env bash
# Guess: a queue with a concurrency of 1 and a timeout runs one job at a time: the next one begins when the one
#   that has timed out has ended.
# Software: p-queue 9.3.5, bottleneck 2.19.5, async-lock 1.5.0 (npm).
# Seen: the timeout ends the waiting, not the job: p-queue (timeout) and bottleneck (expiration) start the next
#   one beside it, three at once here. async-lock (maxOccupationTime) refuses those that wait, which had not
#   begun, with the same error, and starts none.
# Why it matters: a queue for each order that is to keep its events apart runs them together as soon as
#   something is slow; and of a job that is refused nobody can say whether it ran.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts p-queue@9.3.5 bottleneck@2.19.5 async-lock@1.5.0 >/dev/null || exit 2
cat > main.mjs <<'JS'
import AsyncLock from 'async-lock';
import Bottleneck from 'bottleneck';
import PQueue from 'p-queue';

const queue = new PQueue({ concurrency: 1, timeout: 500 });
const limiter = new Bottleneck({ maxConcurrent: 1 });
const lock = new AsyncLock({ maxOccupationTime: 500 });
const ways = {
  'p-queue 9.3.5': [(job) => queue.add(job), '3 began, 3 at once, 3 rejected'],
  'bottleneck 2.19.5': [(job) => limiter.schedule({ expiration: 500 }, job), '3 began, 3 at once, 3 rejected'],
  'async-lock 1.5.0': [(job) => lock.acquire('order-7', job), '1 began, 1 at once, 3 rejected'],
};
let same = true;
for (const [name, [add, want]] of Object.entries(ways)) {
  let began = 0, now = 0, most = 0;
  const job = async () => {
    began++;
    most = Math.max(most, ++now);
    await new Promise((done) => setTimeout(done, 3000));
    now--;
  };
  const ends = await Promise.allSettled([add(job), add(job), add(job)]);
  while (now > 0) await new Promise((done) => setTimeout(done, 50));
  const got = `${began} began, ${most} at once, ${ends.filter((end) => end.status === 'rejected').length} rejected`;
  console.log(`${name}: three jobs of 3 s, one at a time, timeout 500 ms: ${got}`);
  same = same && got === want;
}
process.exit(same ? 0 : 1);
JS
timeout 50 node main.mjs
