#!/usr/bin/env bash
# Guess: a request with the idempotency key of one that went to another path, or under another
#   method, runs; and a 503 is not kept, because the client is meant to come again.
# Software: github.com/gofiber/fiber/v2 v2.52.15 and v3 v3.1.0, middleware/idempotency, defaults.
# Seen: the key alone counts: POST /b with the key of POST /a gets the answer of /a, and /b never
#   runs. A 503 that a handler writes is answered again to each retry for 30 minutes; the same 503
#   as an error that the handler returns is not. A key of other than 36 characters is answered 500.
# Why it matters: a webhook sender's retry after 503 never runs, and an event ID as the key of two
#   endpoints (two hooks for one event) runs at one of them alone.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
check() { # $1 major version, $2 release, $3 type of the context
	mkdir "v$1" && (
		cd "v$1"
		go mod init finding 2>/dev/null
		cat > main.go <<GO
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"

	"github.com/gofiber/fiber/v$1"
	"github.com/gofiber/fiber/v$1/middleware/idempotency"
)

func main() {
	app := fiber.New()
	app.Use(idempotency.New())
	runs := 0
	handle := func(c $3) error {
		runs++
		switch c.Path() {
		case "/written":
			return c.Status(503).SendString("busy")
		case "/returned":
			return fiber.NewError(503, "busy")
		}
		return c.SendString("ran " + c.Path())
	}
	app.All("/*", handle)
	send := func(method, path, key string) string {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("X-Idempotency-Key", key)
		answer, err := app.Test(r)
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		body, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			os.Exit(2)
		}
		return fmt.Sprintf("%d %s, %d handled", answer.StatusCode, body, runs)
	}
	key := func(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }
	same := true
	for _, c := range []struct{ method, path, key, want string }{
		{"POST", "/a", key(1), "200 ran /a, 1 handled"},
		{"POST", "/b", key(1), "200 ran /a, 1 handled"},
		{"DELETE", "/b", key(1), "200 ran /a, 1 handled"},
		{"POST", "/written", key(2), "503 busy, 2 handled"},
		{"POST", "/written", key(2), "503 busy, 2 handled"},
		{"POST", "/returned", key(3), "503 busy, 3 handled"},
		{"POST", "/returned", key(3), "503 busy, 4 handled"},
		{"POST", "/a", "evt_1", "500 invalid idempotency key: invalid length: 5 != 36, 4 handled"},
	} {
		got := send(c.method, c.path, c.key)
		fmt.Printf("fiber $2: %s %s with key …%s: %s\n", c.method, c.path, c.key[len(c.key)-2:], got)
		same = same && got == c.want
	}
	if !same {
		os.Exit(1)
	}
}
GO
		go get "github.com/gofiber/fiber/v$1@$2" 2>log || { cat log; exit 2; }
		go build -o finding . || exit 2
		timeout 50 ./finding
	)
}
check 2 v2.52.15 '*fiber.Ctx'
check 3 v3.1.0 fiber.Ctx
