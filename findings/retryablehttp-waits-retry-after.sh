#!/usr/bin/env bash
# Guess: RetryWaitMax ("maximum time to wait") bounds each wait of go-retryablehttp, also one that
#   Retry-After asks for.
# Software: github.com/hashicorp/go-retryablehttp v0.7.8, NewClient.
# Seen: Retry-After of a 429 or 503 is waited out in full, however long: 3 s with a RetryWaitMax of
#   100 ms. http.Client's Timeout does not end the wait, because it counts for each try; the context of
#   the request does.
# Why it matters: a receiver that answers "Retry-After: 86400" to one event holds the goroutine that
#   delivers it for a day, and all events behind it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// post sends an event whose first answer is 503 with header, and returns how long it took.
func post(ctx context.Context, header string) (time.Duration, error) {
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.RetryWaitMin, client.RetryWaitMax, client.HTTPClient.Timeout = 10*time.Millisecond, 100*time.Millisecond, time.Second
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	answer, err := client.Do(request)
	if err == nil {
		err = answer.Body.Close()
	}
	return time.Since(began), err
}

func main() {
	none, err1 := post(context.Background(), "")
	long, err2 := post(context.Background(), "3")
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	bounded, err3 := post(ctx, "3")
	fmt.Printf("go-retryablehttp v0.7.8, RetryWaitMax 100 ms, Timeout 1 s: 503, then 200 after %v, %v\n", none, err1)
	fmt.Printf("go-retryablehttp v0.7.8: 503 with Retry-After: 3, then 200 after %v, %v\n", long, err2)
	fmt.Printf("go-retryablehttp v0.7.8: the same with a context of 500 ms: %v, %v\n", bounded, err3)
	if err1 != nil || err2 != nil || none > 500*time.Millisecond || long < 3*time.Second || bounded > time.Second ||
		!errors.Is(err3, context.DeadlineExceeded) {
		os.Exit(1)
	}
}
GO
go get github.com/hashicorp/go-retryablehttp@v0.7.8 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
