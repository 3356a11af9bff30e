#!/usr/bin/env bash
# Guess: "every 90 minutes" is a run each hour and a half, or is refused, because cron cannot say it; "every 10
#   days" is a run each tenth day.
# Software: Debian package ruby-fugit 1.5.2-1, with ruby-et-orbi and ruby-raabro (needs Debian 12 and Ruby).
# Seen: it becomes "*/90 * * * *", which is once an hour. "every 45 minutes" is 45 minutes, then 15, "every 10
#   days" ends each month of 31 with two days in a row, "every 7 hours" has one of three at midnight.
#   "every 2 weeks" is refused.
# Why it matters: the schedulers of Rails read such words by fugit (rufus-scheduler, GoodJob, Solid Queue,
#   sidekiq-cron). A job that takes an hour and a quarter overlaps the next one, which it never would.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ruby-fugit=1.5.2-1 ruby-et-orbi ruby-raabro ruby-tzinfo ruby-concurrent >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.rb <<'RB'
require "fugit"

want = { "every 90 minutes" => "05:00 06:00 07:00 08:00", "every 45 minutes" => "04:45 05:00 05:45 06:00",
         "every 7 hours" => "07:00 14:00 21:00 00:00", "every 10 days" => "31 01 11 21", "every 2 weeks" => "refused" }
same = want.map do |words, expected|
  cron = Fugit.parse(words)
  at = EtOrbi::EoTime.new(Time.utc(2026, 1, 30, 4, 20), "UTC")
  format = words.end_with?("days") ? "%d" : "%H:%M"
  got = cron ? Array.new(4) { (at = cron.next_time(at)).strftime(format) }.join(" ") : "refused"
  puts "fugit #{Fugit::VERSION}: #{words}#{" (#{cron.original})" if cron}: #{got}"
  got == expected
end
exit(same.all? ? 0 : 1)
RB
RUBYLIB=$(printf '%s:' usr/lib/ruby/vendor_ruby usr/share/rubygems-integration/all/gems/*/lib) timeout 50 ruby main.rb
