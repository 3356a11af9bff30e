#!/usr/bin/env bash
# Guess: Go's http.Client never sends a POST again by itself once the server has read it.
# Software: net/http of Go 1.26.8.
# Seen: with a header Idempotency-Key it does, when a reused connection is closed before the
#   response: the server runs the request twice and the caller sees one 200. Without it, an error.
# Why it matters: a sender that adds the header for the receiver's sake turns one call into two,
#   and the receiver has to know the key; a log of calls shows one.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOTOOLCHAIN=go1.26.8 GOWORK=off
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
	"runtime"
	"strings"
	"sync/atomic"
)

// runs posts two requests on one connection, of which the server reads the second and closes.
// It returns how often the server read the second, and what its caller got.
func runs(key string) (int32, string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	defer listener.Close()
	var second atomic.Int32
	serve := func(conn net.Conn) {
		defer conn.Close()
		for r := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			if req.URL.Path == "/second" && second.Add(1) == 1 {
				return
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go serve(conn)
		}
	}()
	client := &http.Client{Transport: &http.Transport{}}
	post := func(path string) string {
		req, _ := http.NewRequest("POST", "http://"+listener.Addr().String()+path, strings.NewReader("{}"))
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		resp, err := client.Do(req)
		if err != nil {
			return "an error"
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.Status
	}
	post("/first")
	got := post("/second")
	return second.Load(), got
}

func main() {
	without, outcome := runs("")
	fmt.Printf("net/http of %s: POST: run %d times, the caller gets %s\n", runtime.Version(), without, outcome)
	with, status := runs("key-1")
	fmt.Printf("net/http of %s: POST with Idempotency-Key: run %d times, the caller gets %s\n",
		runtime.Version(), with, status)
	if without != 1 || with != 2 || status != "200 OK" {
		os.Exit(1)
	}
}
GO
go build -o finding . || exit 2
timeout 50 ./finding
