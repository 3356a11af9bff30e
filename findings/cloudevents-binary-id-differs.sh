#!/usr/bin/env bash
# Guess: an event whose ID is not ASCII has the same ID for every CloudEvents SDK, in binary mode as in
#   structured: the HTTP binding, section 3.1.3.2, has such attributes percent-encoded in headers.
# Software: github.com/cloudevents/sdk-go/v2 v2.16.2; cloudevents 10.0.0 (npm), Node 20.
# Seen: neither encodes, neither decodes. From npm's to Go's "café-1" arrives as "caf\xe9-1", from Go's
#   to npm's as "cafÃ©-1", and what another SDK sent right, as "caf%C3%A9-1", stays so at both. npm's
#   cannot send "注文-1" in binary mode at all. In structured mode all arrive as they were.
# Why it matters: a receiver that drops repeats by the event ID runs an event again that came in both
#   modes, or through a second SDK; and a source or subject (an order, a file) is another one.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts cloudevents@10.0.0 >/dev/null || exit 2
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// send posts an event with that ID to url, in that mode.
func send(mode, id, url string) error {
	e := cloudevents.NewEvent()
	e.SetID(id)
	e.SetType("order")
	e.SetSource("/shop")
	ctx := binding.WithForceBinary(context.Background())
	if mode == "structured" {
		ctx = binding.WithForceStructured(ctx)
	}
	r, err := http.NewRequest(http.MethodPost, url, nil)
	if err == nil {
		err = cehttp.WriteRequest(ctx, (*binding.EventMessage)(&e), r)
	}
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

func main() {
	if len(os.Args) == 4 {
		if err := send(os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	// It answers with the ID of what it gets, quoted, and ends with its input.
	go http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := cehttp.NewEventFromHTTPRequest(r)
		if err != nil {
			fmt.Fprint(w, err)
			return
		}
		fmt.Fprintf(w, "%q", e.ID())
	}))
	os.Stdin.Read(make([]byte, 1))
}
GO
go get github.com/cloudevents/sdk-go/v2@v2.16.2 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
cat > main.js <<'JS'
const http = require("node:http");
const { execFile, spawn } = require("node:child_process");
const { CloudEvent, HTTP, Mode } = require("cloudevents");

const post = (port, headers, body) => new Promise((done) => {
  try {
    http.request({ host: "127.0.0.1", port, method: "POST", headers }, (answer) => {
      let text = "";
      answer.on("data", (bytes) => { text += bytes; }).on("end", () => done(text));
    }).on("error", (e) => done(e.code)).end(body);
  } catch (e) { done(e.code); }
});
const fromNpm = (mode, id, port) => {
  const event = new CloudEvent({ id, type: "order", source: "/shop" });
  const { headers, body } = mode === Mode.BINARY ? HTTP.binary(event) : HTTP.structured(event);
  return post(port, headers, body);
};
let received;
const npm = http.createServer((req, res) => {
  let body = "";
  req.on("data", (bytes) => { body += bytes; }).on("end", () => {
    received = HTTP.toEvent({ headers: req.headers, body }).id;
    res.end(JSON.stringify(received));
  });
});
const fromGo = (mode, id, port) => new Promise((done) => execFile("./finding",
  [mode, id, `http://127.0.0.1:${port}/`], (error, text) => done(error ? text : JSON.stringify(received))));
const encoded = (port) => post(port, { "ce-id": "caf%C3%A9-1", "ce-type": "order", "ce-source": "/shop",
  "ce-specversion": "1.0" }, "");

const free = http.createServer().listen(0, "127.0.0.1", async () => {
  const goPort = free.address().port;
  await new Promise((closed) => free.close(closed));
  const go = spawn("./finding", [`127.0.0.1:${goPort}`], { stdio: ["pipe", "inherit", "inherit"] });
  while (await post(goPort, {}, "") === "ECONNREFUSED") await new Promise((later) => setTimeout(later, 50));
  await new Promise((listening) => npm.listen(0, "127.0.0.1", listening));
  const npmPort = npm.address().port;
  let same = true;
  for (const [what, seen, want] of [
    ["npm to Go, binary, café-1", await fromNpm("binary", "café-1", goPort), '"caf\\xe9-1"'],
    ["npm to Go, structured, café-1", await fromNpm("structured", "café-1", goPort), '"café-1"'],
    ["npm to Go, binary, 注文-1", await fromNpm("binary", "注文-1", goPort), "ERR_INVALID_CHAR"],
    ["Go to npm, binary, café-1", await fromGo("binary", "café-1", npmPort), '"cafÃ©-1"'],
    ["Go to npm, structured, café-1", await fromGo("structured", "café-1", npmPort), '"café-1"'],
    ["encoded to Go", await encoded(goPort), '"caf%C3%A9-1"'],
    ["encoded to npm", await encoded(npmPort), '"caf%C3%A9-1"'],
  ]) {
    console.log(`cloudevents sdk-go v2.16.2, npm 10.0.0: ${what}: ${seen}`);
    same = same && seen === want;
  }
  go.kill();
  npm.close();
  process.exit(same ? 0 : 1);
});
JS
timeout 50 node main.js
