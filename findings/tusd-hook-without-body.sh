#!/usr/bin/env bash
# Guess: a hook of tusd that is answered 204 (or 202 without a body) has succeeded.
# Software: github.com/tus/tusd/v2 v2.8.0, pkg/hooks/http.
# Seen: an error; the body has to be JSON, also where it may be empty. 200 with {} succeeds.
# Why it matters: a receiver that says "accepted" makes a pre-create hook refuse the upload.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/tus/tusd/v2/pkg/hooks"
	tusd "github.com/tus/tusd/v2/pkg/hooks/http"
)

func main() {
	same := true
	for _, c := range []struct {
		status int
		body   string
		fails  bool
	}{{200, "{}", false}, {200, "", true}, {202, "", true}, {204, "", true}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		hook := &tusd.HttpHook{Endpoint: server.URL, MaxRetries: 1, Backoff: time.Millisecond}
		if err := hook.Setup(); err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		_, err := hook.InvokeHook(hooks.HookRequest{Type: hooks.HookPreCreate})
		fmt.Printf("tusd v2.8.0: hook answered %d %q: error %v\n", c.status, c.body, err)
		same = same && (err != nil) == c.fails
		server.Close()
	}
	if !same {
		os.Exit(1)
	}
}
GO
go get github.com/tus/tusd/v2@v2.8.0 2>log || { cat log; exit 2; }
go mod tidy 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
