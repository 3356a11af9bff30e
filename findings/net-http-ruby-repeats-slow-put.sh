#!/usr/bin/env bash
# Guess: Ruby's Net::HTTP sends a request once; read_timeout raises Net::ReadTimeout after so long.
# Software: Net::HTTP of Ruby 3.1 (Debian 12's ruby), defaults but for read_timeout.
# Seen: a PUT or DELETE that is not answered in time is sent again at once on a new connection, while
#   the first one is still at work, and the caller gets the second answer, or the timeout after twice
#   the time. A POST is sent once. (max_retries = 0 sends each once.)
# Why it matters: an event that is sent as a PUT, and takes longer than the timeout, runs twice at the
#   same time, from a program that shows one call.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
ruby -e 'exit RUBY_VERSION.start_with?("3.1.") ? 0 : 1' || exit 2
cat > main.rb <<'RB'
require "net/http"
require "socket"

# slow answers its first request after 3 s, and all others at once. They are counted.
def slow
  server, came = TCPServer.new("127.0.0.1", 0), []
  Thread.new do
    loop do
      Thread.new(server.accept) do |socket|
        socket.gets("\r\n\r\n")
        came << 1
        first = came.size == 1
        sleep 3 if first
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        socket.close
      rescue SystemCallError # the caller is gone
        nil
      end
    end
  end
  [server.addr[1], came]
end

def send_event(kind, retries)
  port, came = slow
  http = Net::HTTP.new("127.0.0.1", port)
  http.read_timeout = 1
  http.max_retries = retries if retries
  request = kind.new("/hook")
  request["Content-Length"] = "0"
  got = begin
    http.request(request).code
  rescue Net::ReadTimeout => error
    error.class.name
  end
  sleep 0.2
  "sent #{came.size} times, #{got}"
end

same = [[Net::HTTP::Put, nil, "sent 2 times, 200"], [Net::HTTP::Delete, nil, "sent 2 times, 200"],
        [Net::HTTP::Post, nil, "sent 1 times, Net::ReadTimeout"],
        [Net::HTTP::Put, 0, "sent 1 times, Net::ReadTimeout"]].map do |kind, retries, want|
  got = send_event(kind, retries)
  puts "Ruby #{RUBY_VERSION}: #{kind::METHOD}#{" with max_retries 0" if retries}: #{got}"
  got == want
end
exit(same.all? ? 0 : 1)
RB
timeout 50 ruby main.rb
