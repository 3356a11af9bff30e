package requests

import (
	"testing"
	"time"

	"hooklock/proxy/kept"
)

// FuzzOpen: no bytes are opened that were not sealed, and nothing panics.
func FuzzOpen(f *testing.F) {
	keys, err := ParseKeys(keyLine("k1", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(keys.Seal(execution(1), []byte("secret")))
	f.Add([]byte(sealMagic))
	f.Add([]byte(sealMagic + "\x02k1"))
	f.Add([]byte(sealMagic + "\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if plain, err := keys.Open(execution(2), b); err == nil {
			t.Errorf("%x was opened: %q", b, plain)
		}
	})
}

// FuzzParseKeys: what is not a key file says so, and never with a key in it.
func FuzzParseKeys(f *testing.F) {
	f.Add("k1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	f.Add("# none\n\nunsealed\n")
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= k1")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			return
		}
		b := keys.Seal(execution(1), []byte(kept.Magic))
		if got, err := keys.Open(execution(1), b); err != nil || string(got) != kept.Magic {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	})
}

func aRequest() *Request {
	return &Request{
		Head: []byte("POST /hooks/acme HTTP/1.1\r\nhost:  a\r\nX-Name: \xff\r\n\r\n"), Body: []byte("{\"id\":1}\x00\n"),
		Arrived: time.Unix(1_700_000_000, 123_456_789), Peer: "192.0.2.1:4711",
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TraceState: "a=b",
	}
}
