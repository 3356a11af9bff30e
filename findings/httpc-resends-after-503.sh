#!/usr/bin/env bash
# Guess: httpc:request returns the 503 that the server gave, with its Retry-After: it has no option for
#   retries.
# Software: inets of Debian 12's Erlang, erlang-inets 1:25.2.3 (needs it installed, and Node), defaults.
# Seen: a POST that is answered 503 with a Retry-After of one or two digits is sent again after so many
#   seconds, for as long as the server says so and the caller's timeout is not over. Without the header,
#   or with 100 and more, or a date, the 503 is returned at once.
# Why it matters: a sender in Erlang or Elixir that retries by itself sends each refused event twice as
#   often as it says; one that has no retries has some, that its log does not show; and a call that is
#   to end at once blocks its process for up to 99 s.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
command -v escript >/dev/null && dpkg-query -W -f '${Version}' erlang-inets 2>/dev/null | grep -q '^1:25\.2\.3' || exit 2
cat > send.escript <<'ERL'
#!/usr/bin/env escript
main([Url]) ->
  {ok, _} = application:ensure_all_started(inets),
  {ok, {{_, Status, _}, _, _}} = httpc:request(post, {Url, [], "application/json", "{\"id\":1}"}, [], []),
  io:format("~p", [Status]).
ERL
cat > main.js <<'JS'
const http = require("node:http");
const { execFile } = require("node:child_process");

// send returns how often an event came whose first so many answers are 503, and what its sender got.
const send = (busy, header) => new Promise((done) => {
  let came = 0;
  const server = http.createServer((req, res) => {
    req.resume().on("end", () => res.writeHead(++came <= busy ? 503 : 200, came <= busy ? header : {}).end());
  }).listen(0, "127.0.0.1", () => execFile("escript", ["send.escript",
    `http://127.0.0.1:${server.address().port}/hook`], (error, output, text) => {
    server.close();
    server.closeAllConnections();
    const seen = `${error ? text : output} after ${came}`;
    console.log(`inets of Erlang 25.2.3: ${busy} times 503 with ${JSON.stringify(header)}: ${seen}`);
    done(seen);
  }));
});

(async () => {
  const once = await send(1, { "retry-after": "1" });
  const thrice = await send(3, { "retry-after": "1" });
  const without = await send(1, {});
  const long = await send(1, { "retry-after": "100" });
  process.exit(once === "200 after 2" && thrice === "200 after 4" && without === "503 after 1" &&
    long === "503 after 1" ? 0 : 1);
})();
JS
timeout 50 node main.js
