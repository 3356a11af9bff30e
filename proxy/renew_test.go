package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"hooklock/idem/naming"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// headOf is the sample as its sender sends it: with white space that means nothing, and other lines
// between.
func headOf(t *rapid.T, r *sender.Request) []byte {
	white := rapid.StringMatching(`[ \t]{0,2}`)
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: hooks.example.com\r\n", r.Method, r.Target)
	for _, f := range r.Fields {
		if rapid.Bool().Draw(t, "other") {
			b = fmt.Appendf(b, "X-Other: %s\r\n", rapid.StringMatching(`[!-~]{0,9}`).Draw(t, "value"))
		}
		b = fmt.Appendf(b, "%s:%s%s%s\r\n", f.Name, white.Draw(t, "before"), f.Value, white.Draw(t, "behind"))
	}
	return fmt.Appendf(b, "%s: 1999-01-01T00:00:00Z\r\nContent-Length: %d\r\n\r\n", sender.RenewedHeader, len(r.Body))
}

func parsed(t *rapid.T, raw, body []byte) (*wire.Head, *sender.Delivery) {
	var h fasthttp.RequestHeader
	if err := h.Read(bufio.NewReader(bytes.NewReader(raw))); err != nil {
		t.Fatal(err)
	}
	head := new(wire.Head)
	if err := wire.ParseHead(&h, head); err != nil {
		t.Fatal(err)
	}
	d := &sender.Delivery{Method: head.Method(), Target: head.Target(), Body: body}
	for _, f := range head.Fields() {
		d.Fields = append(d.Fields, naming.Field(f))
	}
	return head, d
}

// TestARenewedHeadIsTheHeadThatCameButForTheNamedLines: on the wire, for every sender that signs
// with a secret.
func TestARenewedHeadIsTheHeadThatCameButForTheNamedLines(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	signed, changes := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), 0
	for _, p := range sender.Presets() {
		key := secret
		if _, err := sender.Sample(p.Name, []byte(key), signed); err != nil {
			key = "00112233" // hex, and base64
		}
		c := sender.Config{Scheme: p.Scheme, Secrets: [][]byte{[]byte(key)}, PublicURL: "https://hooks.example.com",
			Tolerance: time.Minute}
		renewer, err := sender.NewRenewer(c)
		if errors.Is(err, sender.ErrNotRenewable) {
			continue
		}
		if err != nil {
			t.Fatal(p.Name, err)
		}
		verifier, err := sender.New(c)
		if err != nil {
			t.Fatal(p.Name, err)
		}
		rapid.Check(t, func(rt *rapid.T) {
			r, err := sender.Sample(p.Name, []byte(key), signed)
			if err != nil {
				rt.Fatal(err)
			}
			raw, at := headOf(rt, r), signed.Add(time.Hour)
			head, d := parsed(rt, raw, r.Body)
			came := string(head.AppendTo(nil, wire.HeadOptions{Length: int64(len(r.Body))}))
			renewed, err := renewer.Renew(d, at)
			if err != nil {
				rt.Fatal(p.Name, err)
			}
			named, extra := map[string]bool{}, []byte(nil)
			for _, change := range renewed.Changes {
				named[string(d.Fields[change.At].Name)] = true
				head.SetValue(change.At, change.Value)
			}
			if renewed.Original != "" {
				changes++
				extra = wire.AppendField(extra, sender.RenewedHeader, []byte(renewed.Original))
			}
			sent := head.AppendTo(nil, wire.HeadOptions{Length: int64(len(r.Body)), Extra: extra})
			checkLines(rt, came, string(sent), named, string(extra))
			_, again := parsed(rt, sent, r.Body)
			if renewal, _ := sender.RenewalOf(c); renewal == sender.RenewalPossible {
				if err := verifier.Verify(again, at); err != nil {
					rt.Fatal(p.Name, err)
				}
			}
		})
	}
	if changes == 0 {
		t.Error("nothing was renewed")
	}
}

// checkLines compares two heads byte for byte, but for the values of the named lines and for one
// more line at the end.
func checkLines(t *rapid.T, came, sent string, named map[string]bool, extra string) {
	want, got := strings.SplitAfter(came, "\r\n"), strings.SplitAfter(strings.Replace(sent, extra+"\r\n", "\r\n", 1),
		"\r\n")
	if len(want) != len(got) {
		t.Fatalf("%q became %q", came, sent)
	}
	for i, line := range want {
		name, value, _ := strings.Cut(line, ":")
		if !named[name] {
			if got[i] != line {
				t.Fatalf("%q became %q", line, got[i])
			}
			continue
		}
		old := strings.Trim(value, " \t\r\n")
		before, behind, _ := strings.Cut(line, old)
		if got[i] == line || !strings.HasPrefix(got[i], before) || !strings.HasSuffix(got[i], behind) {
			t.Fatalf("%q became %q", line, got[i])
		}
	}
}
