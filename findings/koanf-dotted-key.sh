#!/usr/bin/env bash
# Guess: a YAML file that has "a.b" as a key and also b below a is refused by koanf, or one of
#   the two wins, always the same.
# Software: github.com/knadh/koanf/v2 v2.4.1, parsers/yaml v1.1.1.
# Seen: Get("a.b") returns now the one, now the other, from load to load of the same bytes.
# Why it matters: settings keyed by host ("api.test") and a dot as delimiter meet; a webhook's
#   secret or timeout then changes by chance with a restart.
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
	seen := map[string]int{}
	for range 1000 {
		k := koanf.New(".")
		err := k.Load(rawbytes.Provider([]byte("a:\n  b: nested\na.b: dotted\n")), yaml.Parser())
		if err != nil {
			fmt.Println("koanf v2.4.1:", err)
			os.Exit(1)
		}
		seen[k.String("a.b")]++
	}
	fmt.Printf("koanf v2.4.1: 1000 loads of one file: %v\n", seen)
	if seen["nested"] == 0 || seen["dotted"] == 0 {
		os.Exit(1)
	}
}
GO
k=github.com/knadh/koanf
go get $k/v2@v2.4.1 $k/parsers/yaml@v1.1.1 $k/providers/rawbytes@v1.0.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
