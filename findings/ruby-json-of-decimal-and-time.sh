#!/usr/bin/env bash
# Guess: JSON.generate of Ruby writes BigDecimal("10.50") as 10.5, or "10.5", and a Time in ISO 8601, with its
#   fraction.
# Software: json and bigdecimal of Ruby 3.1 (Debian 12's ruby); the same with to_json.
# Seen: "0.105e2", a string, and "2026-11-29 13:00:00 UTC": the fraction is gone, and what is left is refused by
#   Go's time.RFC3339 and by Python 3.11's fromisoformat.
# Why it matters: a sender, or a job, without a framework that changes this sends amounts that a check for
#   decimals refuses, and two changes in one second have the same time, so that a receiver that keeps the
#   newer of two keeps either.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > main.rb <<'RB'
require "bigdecimal"
require "json"
event = { amount: BigDecimal("10.50"), small: BigDecimal("0.0001"), at: Time.at(1795957200, 123_456, :usec).utc }
puts JSON.generate(event)
RB
got=$(timeout 50 /usr/bin/ruby main.rb) || exit 2
echo "Ruby $(/usr/bin/ruby -e 'print RUBY_VERSION'): $got"
[ "$got" = '{"amount":"0.105e2","small":"0.1e-3","at":"2026-11-29 13:00:00 UTC"}' ]
