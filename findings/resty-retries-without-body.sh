#!/usr/bin/env bash
# Guess: a POST that resty repeats after a 503 has the body of the first; what cannot be read twice
#   is kept in memory, or not repeated. A strings.Reader can be read twice in any case.
# Software: github.com/go-resty/resty/v2 v2.17.2, SetRetryCount and a condition on the status.
# Seen: a body given as an io.Reader, a strings.Reader, too, is empty in the repeated POST. It is
#   sent with Content-Length 0, answered 200, and Post returns no error. A []byte or string is whole.
# Why it matters: a webhook that was refused for a moment arrives as an empty one, and counts as
#   delivered. (SetRetryResetReaders, off by default, rewinds those that can be.)
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
	"strings"
	"time"

	"github.com/go-resty/resty/v2"
)

func main() {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%q with length %d", body, r.ContentLength))
		if len(got) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	const order = `{"order":1}`
	whole, empty := `"{\"order\":1}" with length 11`, `"" with length 0`
	same := true
	for _, c := range []struct {
		what   string
		body   any
		second string
	}{{"string", order, whole}, {"[]byte", []byte(order), whole}, {"strings.Reader", strings.NewReader(order), empty}} {
		got = nil
		client := resty.New().SetRetryCount(1).SetRetryWaitTime(time.Millisecond).SetLogger(silent{})
		client.AddRetryCondition(func(r *resty.Response, _ error) bool { return r.StatusCode() >= 500 })
		answer, err := client.R().SetBody(c.body).Post(server.URL)
		if err != nil {
			fmt.Println("resty v2.17.2:", err)
			os.Exit(1)
		}
		fmt.Printf("resty v2.17.2: body as %s: sent %s; the caller gets %d\n", c.what, strings.Join(got, ", then "), answer.StatusCode())
		same = same && len(got) == 2 && got[0] == whole && got[1] == c.second && answer.StatusCode() == 200
	}
	if !same {
		os.Exit(1)
	}
}

// silent drops resty's own lines.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}
GO
go get github.com/go-resty/resty/v2@v2.17.2 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
