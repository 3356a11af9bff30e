package sender

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"hooklock/idem/naming"
)

func TestADiagnosisSaysWhatWouldMakeASignatureRight(t *testing.T) {
	const body = `{"id":"1"}`
	generic := Config{Scheme: "hmac", Header: "X-Sig", Secrets: [][]byte{[]byte("s")}}
	signed := func(parts ...string) *Delivery {
		return &Delivery{Method: []byte("POST"), Target: []byte("/h"), Body: []byte(body),
			Fields: []naming.Field{field("X-Sig", signedHex("s", parts...))}}
	}
	for _, tt := range []struct {
		name   string
		change func(c *Config, d *Delivery)
		want   string
	}{
		{"a secret with spaces", func(c *Config, _ *Delivery) {
			c.Secrets[0] = []byte(" s\n")
		}, "without spaces, quotes or line breaks"},
		{"a secret in quotes", func(c *Config, _ *Delivery) {
			c.Secrets[0] = []byte(`"s"`)
		}, "without spaces, quotes or line breaks"},
		{"a secret in base64", func(c *Config, _ *Delivery) {
			c.Secrets[0] = []byte(base64.StdEncoding.EncodeToString([]byte("s")))
		}, "decoded from base64"},
		{"a secret in hex", func(c *Config, _ *Delivery) { c.Secrets[0] = []byte("73") }, "decoded from hex"},
		{"a line break more", func(_ *Config, d *Delivery) {
			d.Body = []byte(body + "\n")
		}, "without the line break at its end"},
		{"written anew", func(_ *Config, d *Delivery) {
			d.Body = []byte("{\n \"id\": \"1\"\n}")
		}, "a proxy parsed and rewrote it"},
		{"another algorithm", func(c *Config, _ *Delivery) { c.Algorithm = "sha512" }, "with algorithm: sha256"},
		{"too much signed", func(c *Config, _ *Delivery) { c.Content = "{method}{body}" }, "with content: {body}"},
		{"another encoding", func(c *Config, _ *Delivery) { c.Encoding = "base64" }, "with encoding: hex"},
		{"another body altogether", func(_ *Config, d *Delivery) {
			d.Body = []byte("{}")
		}, "the digest was made here over the body (2 bytes, SHA-256 44136fa3"},
		{"another header", func(c *Config, _ *Delivery) {
			c.Header = "X-Other"
		}, "headers that may contain a signature: X-Hub-Signature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, d := generic, signed(body)
			c.Secrets = [][]byte{[]byte("s")}
			d.Fields = append(d.Fields, field("X-Hub-Signature", "x"))
			tt.change(&c, d)
			before := bytes.Clone(d.Body)
			got := strings.Join(Diagnose(c, d, testNow()), "\n")
			if !strings.Contains(got, tt.want) || !bytes.Equal(before, d.Body) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := Diagnose(generic, signed(body), testNow()); got != nil {
		t.Errorf("of a right signature: %q", got)
	}
}

func TestADiagnosisKnowsTheURLThatWasSigned(t *testing.T) {
	c, secret := credentials(t, "square")
	d := mustSample(t, "square", secret)
	c.PublicURL = "http://hooks.example.com"
	if got := strings.Join(Diagnose(c, d, testNow()), "\n"); !strings.Contains(got, "with https in public_url") ||
		!strings.Contains(got, `"http://hooks.example.com/hooks/square"`) {
		t.Error(got)
	}
	c.PublicURL = "https://hooks.example.com"
	d.Target = append(bytes.Clone(d.Target), '/')
	if got := strings.Join(Diagnose(c, d, testNow()), "\n"); !strings.Contains(got, "without the / at its end") {
		t.Error(got)
	}
}

func TestADiagnosisShowsNoSecret(t *testing.T) {
	for _, h := range signedHeaders(t) {
		preset, name := h.preset, h.name
		c, secret := credentials(t, preset)
		if covers := Covers(c); covers.coversHeader(name) { // it is signed, and no secret
			continue
		}
		d := mustSample(t, preset, secret)
		signature, _ := d.findHeader(name)
		d.Body = []byte(`{"id":1}`)
		for _, line := range Diagnose(c, d, testNow().Add(time.Hour)) {
			if strings.Contains(line, string(secret)) || strings.Contains(line, string(signature)) {
				t.Errorf("%s: %s", preset, line)
			}
		}
	}
}
