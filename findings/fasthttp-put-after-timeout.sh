#!/usr/bin/env bash
# Guess: a PUT whose answer does not come within ReadTimeout fails once, after that time.
# Software: github.com/valyala/fasthttp v1.78.0, HostClient with its defaults.
# Seen: the PUT is sent five times, each run by the server, and fails after five timeouts.
#   A POST is sent once.
# Why it matters: a callback by PUT to a slow service runs five times before the first error.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

func main() {
	same := true
	for method, want := range map[string]int32{"PUT": 5, "POST": 1} {
		var runs atomic.Int32
		finish := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			runs.Add(1)
			<-finish
		}))
		client := &fasthttp.HostClient{Addr: strings.TrimPrefix(server.URL, "http://"), ReadTimeout: 300 * time.Millisecond}
		var req fasthttp.Request
		req.Header.SetMethod(method)
		req.SetRequestURI(server.URL + "/callback")
		req.SetBodyString("{}")
		start := time.Now()
		err := client.Do(&req, &fasthttp.Response{})
		fmt.Printf("fasthttp v1.78.0: %s with ReadTimeout 300ms: run %d times, %v after %v\n",
			method, runs.Load(), err, time.Since(start).Round(100*time.Millisecond))
		same = same && err != nil && runs.Load() == want
		close(finish)
		server.Close()
	}
	if !same {
		os.Exit(1)
	}
}
GO
go get github.com/valyala/fasthttp@v1.78.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
