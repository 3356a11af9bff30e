#!/usr/bin/env bash
# Guess: two JSON bodies that differ in a number have different canonical forms (RFC 8785), or a number
#   that cannot be kept is refused.
# Software: github.com/gowebpki/jcs v1.0.2, which takes text; canonicalize 4.0.0 and json-canonicalize
#   3.0.1 (npm), which take what JSON.parse makes.
# Seen: numbers become doubles, so the orders 1541815603606036481 and 1541815603606036482 have one
#   canonical form, with neither number; none says so. RFC 8785 asks for I-JSON,
#   which has no such numbers; senders do not.
# Why it matters: a receiver that names an event by the hash of its canonical form, so that another
#   order of its members is no other event, takes two orders for one, and drops the second; a signature
#   over the form is right for both. IDs of 64 bits (snowflakes) are larger than that.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts canonicalize@4.0.0 json-canonicalize@3.0.1 >/dev/null || exit 2
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/gowebpki/jcs"
)

func main() {
	for _, body := range os.Args[1:] {
		canonical, err := jcs.Transform([]byte(body))
		if err != nil {
			canonical = []byte(err.Error())
		}
		fmt.Println(string(canonical))
	}
}
GO
go get github.com/gowebpki/jcs@v1.0.2 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
cat > main.mjs <<'JS'
import canonicalize from "canonicalize";
import { canonicalize as other } from "json-canonicalize";
import { execFileSync } from "node:child_process";

const bodies = ['{"order":1541815603606036481,"n":1}', '{"n":1,"order":1541815603606036482}'];
const seen = {
  "gowebpki/jcs v1.0.2": execFileSync("./finding", bodies).toString().trim().split("\n"),
  "canonicalize 4.0.0": bodies.map((body) => canonicalize(JSON.parse(body))),
  "json-canonicalize 3.0.1": bodies.map((body) => other(JSON.parse(body))),
};
for (const [what, forms] of Object.entries(seen)) console.log(`${what}: ${bodies.join(" and ")}: ${forms.join(" and ")}`);
process.exit(Object.values(seen).every(([a, b]) => a === b && a.startsWith('{"n":1,"order":15418156036060')) ? 0 : 1);
JS
timeout 50 node main.mjs
