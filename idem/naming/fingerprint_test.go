package naming

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"hooklock/idem"
)

func request() *Message {
	return &Message{Method: []byte("POST"), Host: []byte("example.com"), Path: []byte("/a"), Query: []byte("b=1"),
		Body: []byte("body"), Fields: fields("X: 1")}
}

func TestTheFingerprintIsOfWhatWasAskedFor(t *testing.T) {
	first := FingerprintOf(request(), Open{}, nil)
	for _, tt := range []struct {
		sentence string
		change   func(*Message)
		same     bool
	}{
		{"nothing changed", func(*Message) {}, true},
		{"the host in another case", func(m *Message) { m.Host = []byte("EXAMPLE.com") }, true},
		{"another header", func(m *Message) { m.Fields = fields("X: 2") }, true},
		{"another method", func(m *Message) { m.Method = []byte("PUT") }, false},
		{"the method in another case", func(m *Message) { m.Method = []byte("post") }, false},
		{"another host", func(m *Message) { m.Host = []byte("example.org") }, false},
		{"another port", func(m *Message) { m.Host = []byte("example.com:8080") }, false},
		{"another path", func(m *Message) { m.Path = []byte("/b") }, false},
		{"the path spelled otherwise", func(m *Message) { m.Path = []byte("/%61") }, false},
		{"another query", func(m *Message) { m.Query = []byte("b=2") }, false},
		{"another body", func(m *Message) { m.Body = []byte("bodY") }, false},
		{"no body", func(m *Message) { m.Body = nil }, false},
		{"a byte that moved from query to body", func(m *Message) {
			m.Query, m.Body = []byte("b="), []byte("1body")
		}, false},
		{"a byte that moved from path to query", func(m *Message) {
			m.Path, m.Query = []byte("/"), []byte("ab=1")
		}, false},
		{"a byte that moved from method to host", func(m *Message) {
			m.Method, m.Host = []byte("POS"), []byte("texample.com")
		}, false},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			m := request()
			tt.change(m)
			if got := FingerprintOf(m, Open{}, nil); (got == first) != tt.same {
				t.Fatalf("same is %v", got == first)
			}
		})
	}
}

func TestThePartsSayWhatDiffers(t *testing.T) {
	signed := Open{Method: true, Host: true, Target: true}
	for _, tt := range []struct {
		sentence string
		open     Open
		change   func(*Message)
		differ   []string
	}{
		{"nothing changed", Open{}, func(*Message) {}, nil},
		{"the host in another case", Open{}, func(m *Message) { m.Host = []byte("EXAMPLE.com") }, nil},
		{"another method", Open{}, func(m *Message) { m.Method = []byte("PUT") }, []string{"method"}},
		{"another host", Open{}, func(m *Message) { m.Host = []byte("example.org") }, []string{"host"}},
		{"a port", Open{}, func(m *Message) { m.Host = []byte("example.com:8080") }, []string{"port"}},
		{"an address", Open{}, func(m *Message) { m.Host = []byte("[::1]") }, []string{"host"}},
		{"another path and query", Open{}, func(m *Message) {
			m.Path, m.Query = []byte("/b"), []byte("b=2")
		}, []string{"path", "query"}},
		{"another body", Open{}, func(m *Message) { m.Body = []byte("bodY") }, []string{"body"}},
		{"what a signature leaves open", signed, func(m *Message) {
			m.Method, m.Host, m.Path, m.Query = []byte("PUT"), []byte("b:1"), []byte("/%61"), []byte("b=2")
		}, nil},
		{"what it does not", signed, func(m *Message) { m.Path, m.Body = []byte("/b"), nil }, []string{"path", "body"}},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			m := request()
			tt.change(m)
			if got := partsOf(m, tt.open, nil).Differ(partsOf(request(), tt.open, nil)); !slices.Equal(got, tt.differ) {
				t.Fatalf("%v, want %v", got, tt.differ)
			}
		})
	}
}

func TestThePartsStayAcrossReleases(t *testing.T) {
	if text, err := partsOf(request(), Open{}, nil).MarshalText(); err != nil || string(text) != "wXEyiemZfoRhdi0P" {
		t.Fatalf("%s %v", text, err)
	}
}

func TestTheFingerprintStaysAcrossReleases(t *testing.T) {
	// Records in etcd outlive a release: a fingerprint that changes makes every duplicate a
	// mismatch.
	f := FingerprintOf(request(), Open{}, nil)
	if got := hex.EncodeToString(f[:]); got != "d377f0e0732b3c1fda9ba0a535aa85c6" {
		t.Fatal(got)
	}
}

func TestCredentialsShowOnlyWhetherTheyAreEqual(t *testing.T) {
	digest := func(id idem.ExecutionID, lines ...string) string {
		return CredentialsDigest(id, &Message{Fields: fields(lines...)}, &idem.Policy{})
	}
	first := digest("exec_a", "X: 1", "Authorization: Bearer x", "cookie: y")
	if len(first) != 32 {
		t.Fatalf("%q is not 16 bytes in hex", first)
	}
	if got := digest("exec_a", "X: 2"); got != "" {
		t.Fatalf("%q without credentials", got)
	}
	if got := digest("exec_a", "AUTHORIZATION: Bearer x", "Cookie: y"); got != first {
		t.Fatal("other headers or another case change the digest")
	}
	for sentence, got := range map[string]string{
		"another execution":          digest("exec_b", "Authorization: Bearer x", "Cookie: y"),
		"another token":              digest("exec_a", "Authorization: Bearer z", "Cookie: y"),
		"no cookie":                  digest("exec_a", "Authorization: Bearer x"),
		"one more cookie":            digest("exec_a", "Authorization: Bearer x", "Cookie: y", "Cookie: y"),
		"the other way round":        digest("exec_a", "Cookie: Bearer x", "Authorization: y"),
		"a byte that moved":          digest("exec_a", "Authorization: Bearer xy", "Cookie:"),
		"an empty authorization":     digest("exec_a", "Authorization:"),
		"a value moved to execution": digest("exec_aBearer x", "Authorization: ", "Cookie: y"),
	} {
		if got == first || got == "" {
			t.Errorf("%s: %q", sentence, got)
		}
	}
}

func TestWhatASignatureLeavesOpenIsNoOtherRequest(t *testing.T) {
	request := func(method, host, path, query, body string) *Message {
		return &Message{Method: []byte(method), Host: []byte(host), Path: []byte(path), Query: []byte(query),
			Body: []byte(body)}
	}
	bodyAlone, url := Open{Method: true, Host: true, Target: true}, Open{Method: true, Host: true}
	first := request("POST", "h", "/hooks/a", "", "{}")
	for _, c := range []struct {
		sentence       string
		m              *Message
		ofBody, ofURLs bool // the same where the body alone, and where the URL, too, is signed
	}{
		{"a query", request("POST", "h", "/hooks/a", "x", "{}"), true, false},
		{"another host", request("POST", "i", "/hooks/a", "", "{}"), true, true},
		{"another method", request("PUT", "h", "/hooks/a", "", "{}"), true, true},
		{"another spelling", request("POST", "h", "/hooks/%61", "", "{}"), true, false},
		{"another path", request("POST", "h", "/hooks/b", "", "{}"), false, false},
		{"another body", request("POST", "h", "/hooks/a", "", "{ }"), false, false},
	} {
		if FingerprintOf(c.m, Open{}, nil) == FingerprintOf(first, Open{}, nil) {
			t.Errorf("%s, unsigned: the same", c.sentence)
		}
		if got := FingerprintOf(c.m, bodyAlone, nil) == FingerprintOf(first, bodyAlone, nil); got != c.ofBody {
			t.Errorf("%s, the body is signed: same %v", c.sentence, got)
		}
		if got := FingerprintOf(c.m, url, nil) == FingerprintOf(first, url, nil); got != c.ofURLs {
			t.Errorf("%s, the URL is signed: same %v", c.sentence, got)
		}
	}
}

// A library that writes a multipart form makes up its boundary, so a sender's retry has another
// one.
func TestTheBoundaryOfAMultipartFormDoesNotCount(t *testing.T) {
	const text = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\n2\r\n--B--\r\n"
	of := func(kind, body string) *Message {
		m := request()
		m.Fields, m.Body = fields("Content-Type: "+kind), []byte(body)
		return m
	}
	const form = "multipart/form-data; boundary="
	first := of(form+"B", text)
	for _, tt := range []struct {
		sentence string
		other    *Message
		same     bool
	}{
		{"another boundary", of(form+"other", strings.ReplaceAll(text, "--B", "--other")), true},
		{"a boundary in quotes", of(form+`"x y"`, strings.ReplaceAll(text, "--B", "--x y")), true},
		{"another kind of multipart", of("multipart/mixed; boundary=C", strings.ReplaceAll(text, "--B", "--C")), true},
		{"another value", of(form+"C", strings.Replace(strings.ReplaceAll(text, "--B", "--C"), "2", "3", 1)), false},
		{"another header of a part", of(form+"C", strings.Replace(strings.ReplaceAll(text, "--B", "--C"), `"b"`, `"c"`,
			1)), false},
		{"a part that is text of the one before it",
			of(form+"C", strings.Replace(strings.ReplaceAll(text, "--B", "--C"), "1\r\n--C", "1\r\n--", 1)), false},
		{"a part that is missing", of(form+"C",
			"--C\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--C--\r\n"), false},
		{"the boundary in a line of a value",
			of(form+"C", strings.Replace(strings.ReplaceAll(text, "--B", "--C"), "1\r\n", "1 --C\r\n", 1)), false},
		{"a boundary that the body does not have", of(form+"C", text), false},
		{"no boundary", of("multipart/form-data", strings.ReplaceAll(text, "--B", "--C")), false},
		{"a text", of("text/plain; boundary=C", strings.ReplaceAll(text, "--B", "--C")), false},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			if same := FingerprintOf(first, Open{}, nil) == FingerprintOf(tt.other, Open{}, nil); same != tt.same {
				t.Errorf("the fingerprint is the same: %v", same)
			}
			if same := partsOf(first, Open{}, nil).Differ(partsOf(tt.other, Open{}, nil)) == nil; same != tt.same {
				t.Errorf("the parts are the same: %v", same)
			}
		})
	}
}
