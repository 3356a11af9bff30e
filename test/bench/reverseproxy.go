//go:build linux

package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

const roleReverseProxy = "reverseproxy"

// serveReverseProxy is what one would write with the standard library, with a pool that is large
// enough for all connections.
func serveReverseProxy(ctx context.Context, target string, out io.Writer) error {
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}
	to := &url.URL{Scheme: "http", Host: target}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() },
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	ln, err := announce(ctx, out)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	return untilDone(ctx, ln, s.Serve)
}
