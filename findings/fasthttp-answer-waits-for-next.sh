#!/usr/bin/env bash
# Guess: a server answers each request when its handler has returned. A second request that is
#   already there, behind it on the connection (pipelining), waits for its own turn.
# Software: github.com/valyala/fasthttp v1.78.0, with its defaults; net/http of Go to compare.
# Seen: the first answer is sent with the second one: a request that takes 2 s delays the answer
#   of the one before it by 2 s. A deadline for writing, even of none, that the first handler sets
#   sends it at once.
# Why it matters: a sender that has both on one connection times out on an event which was
#   answered, and sends it again; and what a handler writes to the connection by itself overtakes
#   the answer that is held back.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

const slow = 2 * time.Second

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

// waits returns how long the answer to the first of two requests takes, the second of which is slow.
func waits(name string, serve func(net.Listener)) time.Duration {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go serve(listener)
	conn, err := net.Dial("tcp", listener.Addr().String())
	check(err)
	defer conn.Close()
	began := time.Now()
	_, err = io.WriteString(conn, "GET /quick HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	check(err)
	answers := bufio.NewReader(conn)
	took := time.Duration(0)
	for i := range 2 {
		answer, err := http.ReadResponse(answers, nil)
		check(err)
		_, err = io.Copy(io.Discard, answer.Body)
		check(err)
		if i == 0 {
			took = time.Since(began)
		}
	}
	fmt.Printf("%s: /slow takes %v, and the answer to /quick, sent before it, %v\n", name, slow, took.Round(100*time.Millisecond))
	return took
}

func main() {
	serve := func(deadline bool) func(net.Listener) {
		return func(l net.Listener) {
			fasthttp.Serve(l, func(ctx *fasthttp.RequestCtx) {
				if string(ctx.Path()) == "/slow" {
					time.Sleep(slow)
				}
				if deadline {
					ctx.SetWriteDeadline(time.Time{})
				}
			})
		}
	}
	plain := waits("fasthttp v1.78.0", serve(false))
	deadline := waits("the same with ctx.SetWriteDeadline(time.Time{})", serve(true))
	other := waits("net/http", func(l net.Listener) {
		http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				time.Sleep(slow)
			}
		}))
	})
	if plain < slow || deadline > slow/2 || other > slow/2 {
		os.Exit(1)
	}
}
GO
go get github.com/valyala/fasthttp@v1.78.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
