#!/usr/bin/env bash
# Guess: Ruby's httpclient sends a POST once; if it sends one again, then on a kept connection that had
#   ended before the request.
# Software: Debian package ruby-httpclient 2.8.3+git20211122.4658227-1 (needs Debian 12 and Ruby), defaults.
# Seen: a POST that was read and then not answered is sent again at once, also the first one of a
#   connection. The second failure (KeepAliveDisconnected) is raised, or the second answer returned;
#   nothing tells that there were two.
# Why it matters: SDKs for mail, SOAP and clouds send through it. A receiver that dies after its work gets
#   the event twice.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ruby-httpclient=2.8.3+git20211122.4658227-1 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.rb <<'RB'
require "socket"
require "httpclient"

# receiver reads each request, and ends a connection instead of giving more than so many answers on it, but
# for the connections after the first ones. It notes each request's place on its connection.
def receiver(answers, connections: 1)
  server, seen = TCPServer.new("127.0.0.1", 0), []
  Thread.new do
    loop do
      socket = server.accept
      left = connections.positive? ? answers : 9
      connections -= 1
      place = 0
      while socket.gets
        length = 0
        while (line = socket.gets) && line != "\r\n"
          length = Regexp.last_match(1).to_i if line =~ /\Acontent-length: (\d+)/i
        end
        socket.read(length)
        seen << (place += 1)
        break if place > left
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      end
      socket.close
    end
  end
  [server.addr[1], seen]
end

def post(client, port)
  client.post("http://127.0.0.1:#{port}/", "{}").status
rescue HTTPClient::KeepAliveDisconnected => error
  error.class
end

runs = { "a receiver that dies once, on the first request" => [receiver(0), 1, [1, 1], [200]],
         "one that never answers" => [receiver(0, connections: 9), 1, [1, 1], [HTTPClient::KeepAliveDisconnected]],
         "one that ends a kept connection" => [receiver(1), 2, [1, 2, 1], [200, 200]] }
same = runs.map do |what, ((port, seen), posts, places, answers)|
  client = HTTPClient.new
  got = Array.new(posts) { post(client, port) }
  puts "httpclient #{HTTPClient::VERSION}: #{what}: places on their connections #{seen}, answers #{got}"
  [seen, got] == [places, answers]
end
exit(same.all? ? 0 : 1)
RB
gem=$(echo "$dir"/usr/share/rubygems-integration/all/gems/httpclient-*/lib)
RUBYLIB=$dir/usr/lib/ruby/vendor_ruby:$gem timeout 50 ruby main.rb 2>log || { rc=$?; cat log; exit "$rc"; }
