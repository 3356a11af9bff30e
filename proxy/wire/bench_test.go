package wire

import (
	"bufio"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"hooklock/proxy/wiretest"
)

const benchHead = "POST /hooks/stripe/acme?x=1 HTTP/1.1\r\nHost: hooks.example.com\r\nUser-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n" +
	"Content-Length: 1024\r\nAccept: */*; q=0.5, application/xml\r\nCache-Control: no-cache\r\nContent-Type: application/json; charset=utf-8\r\n" +
	"Stripe-Signature: t=1492774577,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd\r\nConnection: keep-alive\r\n" +
	"X-Forwarded-For: 203.0.113.9\r\n\r\n"

// BenchmarkHead validates and rebuilds the head of a typical delivery.
func BenchmarkHead(b *testing.B) {
	var h fasthttp.RequestHeader
	if err := h.Read(bufio.NewReader(strings.NewReader(benchHead))); err != nil {
		b.Fatal(err)
	}
	var head Head
	var dst []byte
	o := HeadOptions{Length: 1024, ForwardedFor: []byte("198.51.100.7"), ForwardedProto: []byte("https"),
		Extra: []byte("Hooklock-Attempt: 1\r\n")}
	b.ReportAllocs()
	for b.Loop() {
		if err := ParseHead(&h, &head); err != nil {
			b.Fatal(err)
		}
		dst = head.AppendTo(dst[:0], o)
	}
}

// BenchmarkSend makes one exchange over loopback; the upstream counts bytes and allocates nothing.
func BenchmarkSend(b *testing.B) {
	head := []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1024\r\n\r\n")
	body := make([]byte, 1024)
	total := len(head) + len(body)
	answer := []byte(okAnswer)
	up := wiretest.Serve(b, func(c *wiretest.Conn) {
		buf := make([]byte, 64<<10)
		for got := 0; ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			for got += n; got >= total; got -= total {
				_, _ = c.Write(answer)
			}
		}
	})
	u := pool(b, up)
	var ans Answer
	x := soon(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := u.Send(x, head, body, true, &ans); err != nil {
			b.Fatal(err)
		}
	}
}
