#!/usr/bin/env bash
# Guess: a section left empty in a second file ("routes:" with each line below commented out)
#   changes nothing in what the first file says below it, as "routes: {}" does not.
# Software: github.com/knadh/koanf/v2 v2.4.1, parsers/yaml v1.1.1.
# Seen: the empty section removes everything below it, without an error; {} keeps it all.
# Why it matters: commenting out the last override of a webhook proxy removes all its routes.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

func main() {
	const first = "routes:\n  stripe: {path: /stripe}\n  github: {path: /github}\n"
	same := true
	for _, c := range []struct {
		second string
		routes int
	}{{"routes: {}\n", 2}, {"routes:\n  # stripe: {path: /pay}\n", 0}} {
		k := koanf.New(".")
		for _, file := range []string{first, c.second} {
			if err := k.Load(rawbytes.Provider([]byte(file)), yaml.Parser()); err != nil {
				fmt.Println("koanf v2.4.1:", err)
				os.Exit(1)
			}
		}
		routes := len(k.MapKeys("routes"))
		fmt.Printf("koanf v2.4.1: two routes, then a file with %q: %d routes\n", c.second, routes)
		same = same && routes == c.routes
	}
	if !same {
		os.Exit(1)
	}
}
GO
k=github.com/knadh/koanf
go get $k/v2@v2.4.1 $k/parsers/yaml@v1.1.1 $k/providers/rawbytes@v1.0.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
