#!/usr/bin/env bash
# Guess: r.FormValue of a Go handler returns what the sender gave; a form that is too long, or malformed,
#   is refused, or at least the handler sees an error.
# Software: net/http of Go 1.26.8.
# Seen: of a form of more than 10 MiB FormValue returns "" for each field, also for one that comes
#   before the end; of a query with a raw semicolon, ?tag=a;b&id=5, "" for that one (tag). Both are errors
#   of ParseForm, which FormValue drops. The handler answers 200.
# Why it matters: an event loses its text, or the parameter that a person put into the URL of the
#   webhook, and counts as delivered. (Call ParseForm first, and look at its error.)
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOTOOLCHAIN=go1.26.8 GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
)

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "event %q, text of %d bytes, tag %q, id %q", r.FormValue("event"), len(r.FormValue("text")),
			r.FormValue("tag"), r.FormValue("id"))
	}))
	defer server.Close()
	same := true
	for _, c := range []struct {
		query string
		bytes int
		want  string
	}{
		{"tag=a&id=5", 9 << 20, `200 event "paid", text of 9437184 bytes, tag "a", id "5"`},
		{"tag=a&id=5", 11 << 20, `200 event "", text of 0 bytes, tag "a", id "5"`},
		{"tag=a;b&id=5", 9, `200 event "paid", text of 9 bytes, tag "", id "5"`},
	} {
		body := "event=paid&text=" + strings.Repeat("x", c.bytes)
		answer, err := http.Post(server.URL+"/hook?"+c.query, "application/x-www-form-urlencoded", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		text, err := io.ReadAll(answer.Body)
		seen := fmt.Sprintf("%d %s", answer.StatusCode, text)
		fmt.Printf("Go 1.26.8: a text of %d bytes, ?%s: %s\n", c.bytes, c.query, seen)
		same = same && err == nil && seen == c.want
	}
	if !same {
		os.Exit(1)
	}
}
GO
go build -o finding . || exit 2
timeout 50 ./finding 2>/dev/null
