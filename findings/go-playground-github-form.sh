#!/usr/bin/env bash
# Guess: the GitHub parser of go-playground/webhooks reads a delivery of either content type
#   that GitHub offers for a webhook, JSON or form.
# Software: github.com/go-playground/webhooks/v6 v6.4.0.
# Seen: the form, GitHub's preset for a new webhook, is refused although its signature is right.
# Why it matters: each push is answered with an error until the content type is changed.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"

	"github.com/go-playground/webhooks/v6/github"
)

func main() {
	const json = `{"ref":"refs/heads/main"}`
	seen := map[string]error{}
	for contentType, body := range map[string]string{
		"application/json":                  json,
		"application/x-www-form-urlencoded": url.Values{"payload": {json}}.Encode(),
	} {
		hook, err := github.New(github.Options.Secret("secret"))
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		mac := hmac.New(sha256.New, []byte("secret"))
		mac.Write([]byte(body))
		req := httptest.NewRequest("POST", "/", strings.NewReader(body))
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("X-GitHub-Event", "push")
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		_, seen[contentType] = hook.Parse(req, github.PushEvent)
		fmt.Printf("go-playground/webhooks v6.4.0: %s: error %v\n", contentType, seen[contentType])
	}
	if seen["application/json"] != nil || seen["application/x-www-form-urlencoded"] == nil {
		os.Exit(1)
	}
}
GO
go get github.com/go-playground/webhooks/v6@v6.4.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
