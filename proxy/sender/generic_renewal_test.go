package sender

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"hooklock/idem/naming"
)

func TestAGenericHMACIsRenewedInPlace(t *testing.T) {
	first, second := []byte("first"), []byte("second")
	at, body := testNow().Add(time.Hour), []byte(`{"a":1}`)
	hexOf := func(key []byte, parts ...string) string {
		return string(newMAC(sha256.New, key).signParts(inHex, []byte(strings.Join(parts, "")), body))
	}
	parts := Config{Scheme: "hmac", From: []string{"header.X-Sig[v1]"}, Timestamp: "header.X-Sig[t]",
		Content: "{header.X-Sig[t]}.{body}"}
	apart := Config{Scheme: "hmac", Header: "X-Sig", Prefix: "sha256=", Timestamp: "header.X-Time",
		Content: "{header.X-Time}{header.X-ID}{body}"}
	for name, c := range map[string]struct {
		config     Config
		sent, want []string // names and values
	}{
		"parts of one header": {parts,
			[]string{"X-Sig", "kid=7, st=1772600767,t=1772600767 ; v1=" + hexOf(second, "1772600767", ".") + ",v2=x"},
			[]string{"X-Sig", "kid=7, st=1772600767,t=1772604367 ; v1=" + hexOf(second, "1772604367", ".") + ",v2=x"}},
		"two secrets and a foreign one": {parts, []string{"x-sig", "t=1772600767,v1=" + hexOf([]byte("x"), "1772600767",
			".") + ",v1=" + hexOf(second, "1772600767", ".") + ",v1=" + hexOf(first, "1772600767", ".")},
			[]string{"x-sig", "t=1772604367,v1=" + hexOf([]byte("x"), "1772600767", ".") + ",v1=" +
				hexOf(second, "1772604367", ".") + ",v1=" + hexOf(first, "1772604367", ".")}},
		"headers of their own": {apart, []string{"X-ID", "e1", "X-Sig",
			"sha256=" + strings.ToUpper(hexOf(first, "2026-03-04T05:06:07Z", "e1")), "X-Time", "2026-03-04T05:06:07Z"},
			[]string{"X-ID", "e1", "X-Sig", "sha256=" + hexOf(first, "2026-03-04T06:06:07Z", "e1"), "X-Time",
				"2026-03-04T06:06:07Z"}},
		"milliseconds": {apart, []string{"X-ID", "e1", "X-Sig", "sha256=" + hexOf(first, "1772600767000", "e1"),
			"X-Time", "1772600767000"},
			[]string{"X-ID", "e1", "X-Sig", "sha256=" + hexOf(first, "1772604367000", "e1"), "X-Time",
				"1772604367000"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.config
			config.Secrets, config.Tolerance = [][]byte{first, second}, time.Minute
			d, want := &Delivery{Method: []byte("POST"), Target: []byte("/"), Body: body},
				&Delivery{Method: []byte("POST"), Target: []byte("/"), Body: body}
			for i := 0; i < len(c.sent); i += 2 {
				d.Fields = append(d.Fields, field(c.sent[i], c.sent[i+1]))
				want.Fields = append(want.Fields, field(c.want[i], c.want[i+1]))
			}
			r, err := mustRenewer(t, config).Renew(d, at)
			if err != nil {
				t.Fatal(err)
			}
			if got := renewed(d, r); !same(got, want) {
				t.Errorf("sent %s", linesOf(got.Fields))
			}
			if err := mustNew(t, config).Verify(renewed(d, r), at); err != nil {
				t.Error(err)
			}
		})
	}
}

func linesOf(fields []naming.Field) []byte {
	var b []byte
	for _, f := range fields {
		b = append(append(append(append(b, f.Name...), ": "...), f.Value...), '\n')
	}
	return b
}

func TestAnHMACWhoseTimeOrSignatureIsNotInTheHeadIsNotRenewed(t *testing.T) {
	for want, configs := range map[Renewal][]Config{
		RenewalNeedless: {{Header: "X"}, {Header: "X", Content: "{header.T}{body}"}},
		RenewalPossible: {{Header: "X", Timestamp: "header.T", Content: "{header.T}{body}"}},
		RenewalImpossible: {
			{Header: "X", Timestamp: "body.t", Content: "{body.t}"},
			{From: []string{"query.sig"}, Timestamp: "header.T", Content: "{header.T}{body}"},
			{From: []string{"header.X", "body.sig"}, Timestamp: "header.T", Content: "{header.T}{body}"},
		},
	} {
		for _, c := range configs {
			c.Scheme, c.Secrets = "hmac", [][]byte{[]byte("s")}
			if got, _ := RenewalOf(c); got != want {
				t.Errorf("%+v: %d, want %d", c, got, want)
			}
			if _, err := NewRenewer(c); errors.Is(err, ErrNotRenewable) != (want == RenewalImpossible) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	}
	c := Config{Scheme: "hmac", Header: "X", Timestamp: "header.T", Content: "{header.T}{body}",
		Secrets: [][]byte{[]byte("s")}}
	odd := newMAC(sha256.New, c.Secrets[0]).signParts(inHex, []byte("1"))
	i := bytes.IndexAny(odd, "abcdef")
	odd[i] -= 'a' - 'A'
	d := &Delivery{Fields: []naming.Field{field("T", "1"), field("X", string(odd))}}
	if _, err := mustRenewer(t, c).Renew(d, testNow()); mustNew(t, c).Verify(d, testNow()) != nil ||
		!errors.Is(err, ErrNotRenewable) {
		t.Errorf("a mixture of cases: %v", err)
	}
}
