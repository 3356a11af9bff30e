#!/usr/bin/env bash
# Guess: Faraday's retry waits max_interval where Retry-After asks for more, and sends again; its
#   retry_statuses work as set, in any program that has loaded Faraday and its adapter.
# Software: Debian package ruby-faraday 1.1.0-7 (needs Debian 12 and Ruby).
# Seen: a Retry-After longer than max_interval ends the tries: the 503 is returned after one, though
#   without the header it is three. And where nothing has loaded Ruby's "date", any retry after a
#   status raises NameError (uninitialized constant DateTime) after the first try.
# Why it matters: a receiver that names the time at which it is free again never gets the event, and
#   one that names none gets it.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ruby-faraday=1.1.0-7 ruby-multipart-post ruby-ruby2-keywords >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.rb <<'RB'
require "socket"
require "net/http"
require "faraday"

# busy answers 503 twice and 200 then; its requests are counted.
def busy(headers)
  server, count = TCPServer.new("127.0.0.1", 0), [0]
  Thread.new do
    loop do
      socket = server.accept
      length = 0
      while (line = socket.gets) && line != "\r\n"
        length = Regexp.last_match(1).to_i if line =~ /\Acontent-length: (\d+)/i
      end
      socket.read(length)
      count[0] += 1
      status, extra = count[0] < 3 ? ["503 Busy", headers] : ["200 OK", ""]
      socket.write("HTTP/1.1 #{status}\r\n#{extra}Content-Length: 0\r\nConnection: close\r\n\r\n")
      socket.close
    end
  end
  [server.addr[1], count]
end

def send_event(headers)
  port, count = busy(headers)
  connection = Faraday.new("http://127.0.0.1:#{port}") do |builder|
    builder.request :retry, max: 2, interval: 0.05, max_interval: 1, retry_statuses: [503], methods: [:post]
    builder.adapter :net_http
  end
  got = begin
    connection.post("/", "{}").status.to_s
  rescue NameError => error
    error.class.name
  end
  "#{got} after #{count[0]}"
end

want = { "without Retry-After, date not loaded" => ["", "NameError after 1"],
         "without Retry-After" => ["", "200 after 3"],
         "Retry-After: 1" => ["Retry-After: 1\r\n", "200 after 3"],
         "Retry-After: 2" => ["Retry-After: 2\r\n", "503 after 1"] }
same = want.map do |what, (headers, expected)|
  got = send_event(headers)
  puts "Faraday #{Faraday::VERSION}, max_interval 1: 503 #{what}: #{got}"
  require "date"
  got == expected
end
exit(same.all? ? 0 : 1)
RB
for lib in usr/share/rubygems-integration/all/gems/*/lib; do path=$PWD/$lib:${path:-$PWD/usr/lib/ruby/vendor_ruby}; done
RUBYLIB=$path timeout 50 ruby main.rb
