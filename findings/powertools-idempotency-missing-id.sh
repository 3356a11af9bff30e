#!/usr/bin/env bash
# Guess: two events that lack the part of the key that tells them apart are refused, or both run, as
#   they do where the key is that one part; throwOnNoIdempotencyKey, "throw if no key was found",
#   refuses them in any case.
# Software: @aws-lambda-powertools/idempotency 2.35.0 (npm), makeIdempotent, a store in memory.
# Seen: with the key "id" both run. With "[account, id]" the second does not: it gets the answer of
#   the first, another event, as null is a value like any other. throwOnNoIdempotencyKey lets this
#   pass, unless all parts are missing. Without it even [null, null] is one key for all events, with
#   a warning that no value was found.
# Why it matters: a new kind of event without an ID runs once for each account; the later ones are
#   answered as done.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-lambda-powertools/idempotency@2.35.0 >log 2>&1 || { cat log; exit 2; }
cat > main.mjs <<'JS'
import { IdempotencyConfig, IdempotencyItemAlreadyExistsError, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { BasePersistenceLayer } from '@aws-lambda-powertools/idempotency/persistence';

class Memory extends BasePersistenceLayer {
  records = new Map();
  async _getRecord(key) { return this.records.get(key); }
  async _putRecord(record) {
    const old = this.records.get(record.idempotencyKey);
    if (old) throw new IdempotencyItemAlreadyExistsError('exists', old);
    this.records.set(record.idempotencyKey, record);
  }
  async _updateRecord(record) { this.records.set(record.idempotencyKey, record); }
  async _deleteRecord(record) { this.records.delete(record.idempotencyKey); }
}

const one = { account: 'acme', amount: 1 }, two = { account: 'acme', amount: 2 };
let same = true;
for (const [eventKeyJmesPath, throwOnNoIdempotencyKey, want] of [
  ['id', false, '1, 2'],
  ['[account, id]', false, '1, 1'],
  ['[account, id]', true, '1, 1'],
  ['[tenant, id]', false, '1, 1'],
  ['[tenant, id]', true, 'error, error'],
]) {
  const handle = makeIdempotent(async (event) => ({ charged: event.amount }), {
    persistenceStore: new Memory(), config: new IdempotencyConfig({ eventKeyJmesPath, throwOnNoIdempotencyKey }),
  });
  const charged = async (event) => {
    try {
      return (await handle(event, {})).charged;
    } catch {
      return 'error';
    }
  };
  const got = `${await charged(one)}, ${await charged(two)}`;
  console.log(`powertools 2.35.0: key ${eventKeyJmesPath}${throwOnNoIdempotencyKey ? ', throwOnNoIdempotencyKey' : ''}: events that charge 1 and 2 answer ${got}`);
  same = same && got === want;
}
process.exit(same ? 0 : 1);
JS
AWS_LAMBDA_FUNCTION_NAME=finding timeout 50 node main.mjs 2>errors
