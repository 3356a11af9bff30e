package kept

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func aRequest() *Request {
	return &Request{
		Head: []byte("POST /hooks/acme HTTP/1.1\r\nhost:  a\r\nX-Name: \xff\r\n\r\n"), Body: []byte("{\"id\":1}\x00\n"),
		Arrived: time.Unix(1_700_000_000, 123_456_789), Peer: "192.0.2.1:4711",
		TLS: true, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TraceState: "a=b",
	}
}

func TestARequestComesBackAsItWas(t *testing.T) {
	for name, r := range map[string]*Request{
		"whole":        aRequest(),
		"without body": {Head: []byte("POST / HTTP/1.1\r\n\r\n"), Body: []byte{}, Arrived: time.Unix(0, 1)},
		"earliest":     {Head: []byte{}, Body: []byte{}, Arrived: time.Unix(0, math.MinInt64)},
		"latest":       {Head: []byte{}, Body: []byte{}, Arrived: time.Unix(0, math.MaxInt64)},
	} {
		b, err := r.Marshal()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := Unmarshal(b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestARequestBeyondItsBoundsIsNotKept(t *testing.T) {
	for want, change := range map[string]func(*Request){
		"head has":       func(r *Request) { r.Head = make([]byte, maxHead+1) },
		"peer address":   func(r *Request) { r.Peer = strings.Repeat("x", maxPeer+1) },
		"trace state":    func(r *Request) { r.TraceState = strings.Repeat("x", maxHead+1) },
		"the arrival":    func(r *Request) { r.Arrived = time.Time{} },
		"1678 and 2262":  func(r *Request) { r.Arrived = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) },
		"trace parent h": func(r *Request) { r.TraceParent = strings.Repeat("x", maxHead+1) },
	} {
		r := aRequest()
		change(r)
		if _, err := r.Marshal(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestOtherBytesAreNoRequest(t *testing.T) {
	good, err := aRequest().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":            nil,
		"another version":    changed(3, 2),
		"something else":     changed(0, 'X'),
		"one byte too many":  append(bytes.Clone(good), 0),
		"one byte too few":   good[:len(good)-1],
		"a length above all": changed(12, 0xff),
		"a longer peer":      changed(15, good[15]+1),
	} {
		if _, err := Unmarshal(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range headerLen {
		if _, err := Unmarshal(good[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}

// FuzzUnmarshal: what is read is written the same way again, so each request has one spelling.
func FuzzUnmarshal(f *testing.F) {
	good, err := aRequest().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:headerLen])
	f.Add(make([]byte, headerLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Unmarshal(bytes.Clone(b))
		if err != nil {
			return
		}
		again, err := r.Marshal()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x was read, and is written as %x, %v", b, again, err)
		}
	})
}
