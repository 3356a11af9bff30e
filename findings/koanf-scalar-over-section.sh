#!/usr/bin/env bash
# Guess: of the variables RETRY=on, RETRY_MAX=5 and MAX=9 each becomes its own setting; or, because
#   "retry" cannot be a text and a section at once, koanf refuses them, or drops RETRY_MAX each time.
# Software: github.com/knadh/koanf/v2 v2.4.1, providers/env/v2 v2.0.2.
# Seen: no error, and what comes out changes from one start to the next: in about a fifth of them
#   the setting max, which MAX=9 sets, is 5: the value of RETRY_MAX is found one level higher.
# Why it matters: one variable too many, and a proxy starts with another limit now and then, under
#   the same environment.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

func main() {
	seen := map[string]int{}
	for range 500 {
		k := koanf.New(".")
		err := k.Load(env.Provider(".", env.Opt{
			EnvironFunc: func() []string { return []string{"RETRY=on", "RETRY_MAX=5", "MAX=9"} },
			TransformFunc: func(name, value string) (string, any) {
				return strings.ReplaceAll(strings.ToLower(name), "_", "."), value
			},
		}), nil)
		if err != nil {
			fmt.Println("koanf v2.4.1:", err)
			os.Exit(1)
		}
		seen[fmt.Sprint(k.Raw())]++
	}
	for what, n := range seen {
		fmt.Printf("koanf v2.4.1: %3d of 500 loads of one environment gave %s\n", n, what)
	}
	if len(seen) != 2 || seen["map[max:5 retry:on]"] == 0 {
		os.Exit(1)
	}
}
GO
k=github.com/knadh/koanf
go get $k/v2@v2.4.1 $k/providers/env/v2@v2.0.2 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
