#!/usr/bin/env bash
# Guess: a fasthttp server that hands its request to a HostClient forwards the body as it came;
#   the handler changes nothing.
# Software: github.com/valyala/fasthttp v1.78.0, with its defaults.
# Seen: a multipart/form-data body is parsed and written anew: the preamble goes, names of
#   headers change, fields come in another order from request to request. Other types stay.
# Why it matters: a signature over the body, right at the proxy, is wrong behind it, and a hash
#   of the body differs between two deliveries of one event.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/valyala/fasthttp"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

func main() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}))
	client := &fasthttp.HostClient{Addr: strings.TrimPrefix(service.URL, "http://")}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go fasthttp.Serve(listener, func(ctx *fasthttp.RequestCtx) { check(client.Do(&ctx.Request, &ctx.Response)) })

	var body strings.Builder
	for _, field := range []string{"timestamp", "token", "signature", "event"} {
		fmt.Fprintf(&body, "--b\r\ncontent-disposition: form-data; name=%q\r\n\r\n1\r\n", field)
	}
	body.WriteString("--b--\r\n")
	arrived := func(contentType string) map[string]bool {
		bodies := map[string]bool{}
		for range 100 {
			resp, err := http.Post("http://"+listener.Addr().String(), contentType, strings.NewReader(body.String()))
			check(err)
			text, err := io.ReadAll(resp.Body)
			check(err)
			resp.Body.Close()
			bodies[string(text)] = true
		}
		fmt.Printf("fasthttp v1.78.0: one body of type %s forwarded 100 times: arrives in %d forms, as it was sent: %v\n",
			contentType, len(bodies), bodies[body.String()])
		return bodies
	}
	plain := arrived("text/plain")
	form := arrived("multipart/form-data; boundary=b")
	if len(plain) != 1 || !plain[body.String()] || len(form) < 2 || form[body.String()] {
		os.Exit(1)
	}
}
GO
go get github.com/valyala/fasthttp@v1.78.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
