package requests

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/test/testkit"
)

// s3Program builds the S3 server once for all tests.
var s3Program = sync.OnceValues(func() (program, reason string) {
	program, reason, err := testkit.BuildS3(programs)
	if err != nil {
		panic(err)
	}
	return program, reason
})

// s3Server is a server with an empty bucket. It skips the test where its modules cannot be had.
func s3Server(t *testing.T, args ...string) (address string) {
	t.Helper()
	program, reason := s3Program()
	if reason != "" {
		t.Skip(reason)
	}
	return testkit.StartS3(t, program, t.TempDir(), args...)
}

func s3Options(address string) S3Options {
	return S3Options{
		Endpoint: "http://" + address, Bucket: testkit.S3Bucket, Prefix: "parked/one", Region: "us-east-1",
		AccessKey: testkit.S3Access, SecretKey: testkit.S3Secret, Timeout: testkit.Patience,
	}
}

func openS3(t *testing.T, o S3Options) *S3 {
	t.Helper()
	s, err := NewS3(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestABucketMeetsTheContractOfAStore(t *testing.T) {
	storeKeepsItsWord(t, openS3(t, s3Options(s3Server(t))))
}

func TestABucketOverTLSIsVerified(t *testing.T) {
	authority := etcdtest.NewAuthority(t)
	server := authority.Issue("127.0.0.1")
	o := s3Options(s3Server(t, "-cert", server.CertFile, "-key", server.KeyFile))
	o.Endpoint = strings.Replace(o.Endpoint, "http:", "https:", 1)
	if err := openS3(t, o).Put(t.Context(), execution(1), nil); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("with the system's roots: %v", err)
	}
	text, err := os.ReadFile(authority.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	o.TLS = &tls.Config{RootCAs: roots}
	storeKeepsItsWord(t, openS3(t, o))
}

func TestEachPrefixHasItsOwnRequests(t *testing.T) {
	o := s3Options(s3Server(t))
	one := openS3(t, o)
	o.Prefix = "parked/one/more"
	more := openS3(t, o)
	o.Prefix = ""
	whole := openS3(t, o)
	for n, s := range []*S3{one, more, whole} {
		if err := s.Put(t.Context(), execution(byte(n)), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for n, s := range []*S3{one, more, whole} {
		if got := list(t, s); !slices.Equal(got, []idem.ExecutionID{execution(byte(n))}) {
			t.Errorf("%q lists %v", s.options.Prefix, got)
		}
	}
}

func TestOrphansInABucketAreSwept(t *testing.T) {
	s := openS3(t, s3Options(s3Server(t)))
	for n := range byte(3) {
		if err := s.Put(t.Context(), execution(n), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(0, 0)
	sweeper := NewSweeper(s, func(_ context.Context, asked []idem.ExecutionID) ([]idem.ExecutionID, error) {
		return asked[1:], nil
	}, func() time.Time { return now })
	pass(t, sweeper, 0)
	now = now.Add(orphanAfter)
	pass(t, sweeper, 2)
	if got := list(t, s); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
}

func TestAnErrorOfS3SaysWhatToDoAndNoSecret(t *testing.T) {
	address := s3Server(t)
	for name, c := range map[string]struct {
		change func(*S3Options)
		want   string
	}{
		"wrong secret": {func(o *S3Options) {
			o.SecretKey = "another-secret-key"
		}, "look at s3.access_key_file, s3.secret_key_file"},
		"unknown key": {func(o *S3Options) {
			o.AccessKey = "nobody-of-that-name"
		}, "the server answers 404 XAdminUserNotFound"}, // AWS has another code
		"missing bucket": {func(o *S3Options) { o.Bucket = "elsewhere" }, "there is no such bucket: make it"},
		"nobody there": {func(o *S3Options) {
			o.Endpoint = "http://" + testkit.FreePort(t)
			o.Timeout = time.Second
		}, "connection refused"},
		"no TLS there": {func(o *S3Options) { o.Endpoint = "https://" + address }, "HTTPS"},
	} {
		o := s3Options(address)
		c.change(&o)
		s := openS3(t, o)
		for call, err := range map[string]error{
			"put": s.Put(t.Context(), execution(1), []byte("x")), "get": second(s.Get(t.Context(), execution(1))),
			"delete": s.Delete(t.Context(), execution(1)), "list": listed(t.Context(), s),
		} {
			if err == nil || !strings.Contains(err.Error(), c.want) && !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), o.Endpoint) {
				t.Errorf("%s, %s: %v", name, call, err)
			} else if strings.Contains(err.Error(), o.SecretKey) || strings.Contains(err.Error(), o.AccessKey) {
				t.Errorf("%s, %s: a key is in %v", name, call, err)
			}
		}
	}
}

func TestWhatAServerSaysIsNotRepeated(t *testing.T) {
	for code, want := range map[string]string{
		"InvalidAccessKeyId":           "the server does not know these keys",
		"AccessDenied":                 "allow them to get, put, delete and list",
		"Odd&#10;&lt;x":                "the server answers 403 Oddx",
		"RequestTimeTooSkewed":         "this machine's clock is not the server's: set it",
		"PermanentRedirect":            "the bucket is in another region: look at s3.endpoint and s3.region",
		"AuthorizationHeaderMalformed": "the bucket is in another region",
		strings.Repeat("Long", 1000):   "the server answers 403 Long",
		"":                             "the server answers 403 ",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>you said %s</Message></Error>", code, testkit.S3Secret)
		}))
		err := openS3(t, s3Options(server.Listener.Addr().String())).Put(t.Context(), execution(1), nil)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "you said") ||
			len(err.Error()) > 300 {
			t.Errorf("%.20s: %v", code, err)
		}
	}
}

func TestCredentialsAreRolled(t *testing.T) {
	o := s3Options(s3Server(t))
	o.SecretKey = "the old one"
	s := openS3(t, o)
	if err := s.Put(t.Context(), execution(1), nil); err == nil {
		t.Fatal("the old key is taken")
	}
	if err := s.SetCredentials(testkit.S3Access, testkit.S3Secret); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), execution(1), nil); err != nil {
		t.Error(err)
	}
}

// between is a proxy in front of an S3 server, which says of each request whether it goes through.
func between(t *testing.T, address string, through func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: address})
			r.Out.Host = r.In.Host // is signed
		},
		Transport: &http.Transport{DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if through(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAServerThatGoesAwayInTheMiddleOfAPutHasNothing(t *testing.T) {
	address := s3Server(t)
	front := between(t, address, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			_, _ = r.Body.Read(make([]byte, 1000))
			panic(http.ErrAbortHandler)
		}
		return true
	})
	o := s3Options(front.Listener.Addr().String())
	s := openS3(t, o)
	k := NewKeeper(100, InS3, s, nil)
	r := aRequest()
	r.Body = bytes.Repeat([]byte("x"), 1<<20)
	if value, err := k.Keep(t.Context(), execution(1), r); err == nil || value != nil {
		t.Errorf("kept %x, %v", value, err)
	}
	if _, err := s.Get(t.Context(), execution(1)); !errors.Is(err, ErrNotKept) {
		t.Errorf("get: %v", err)
	}
}

func TestAServerThatAnswersEverythingWithSuccessIsNoStore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "<html>welcome</html>")
	}))
	t.Cleanup(server.Close)
	k := NewKeeper(0, InS3, openS3(t, s3Options(server.Listener.Addr().String())), nil)
	if value, err := k.Keep(t.Context(), execution(1), aRequest()); err == nil || value != nil ||
		!strings.Contains(err.Error(), "look at s3.endpoint") {
		t.Errorf("kept %x, %v", value, err)
	}
}

func TestASlowServerCostsItsTimeAndNoMore(t *testing.T) {
	address := s3Server(t)
	var slow atomic.Bool
	front := between(t, address, func(_ http.ResponseWriter, r *http.Request) bool {
		if slow.Load() {
			<-r.Context().Done()
		}
		return !slow.Load()
	})
	o := s3Options(front.Listener.Addr().String())
	quick := openS3(t, o)
	o.Timeout = 50 * time.Millisecond
	s := openS3(t, o)
	slow.Store(true)
	for call, err := range map[string]error{
		"put": s.Put(t.Context(), execution(1), nil), "get": second(s.Get(t.Context(), execution(1))),
		"delete": s.Delete(t.Context(), execution(1)),
	} {
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "in time") {
			t.Errorf("%s: %v", call, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := listed(ctx, quick); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("list: %v", err)
	}
	slow.Store(false)
	if err := quick.Put(t.Context(), execution(1), []byte("x")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestWhatBreaksOffOrIsNotReadyIsAskedForAgain(t *testing.T) {
	address := s3Server(t)
	var requests atomic.Int32
	front := between(t, address, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return true
		}
		switch requests.Add(1) {
		case 1:
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return false
		case 2:
			w.Header().Set("Content-Length", "1000000")
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Last-Modified", "Tue, 01 Sep 2026 10:00:00 GMT")
			_, _ = w.Write([]byte("the first bytes"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		return true
	})
	s := openS3(t, s3Options(front.Listener.Addr().String()))
	b := bytes.Repeat([]byte("x"), 1_000_000)
	if err := s.Put(t.Context(), execution(1), b); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), execution(1)); err != nil || !bytes.Equal(got, b) || requests.Load() != 3 {
		t.Errorf("%d bytes after %d requests, %v", len(got), requests.Load(), err)
	}
}

func TestAServerThatDoesNotSayHowLongAnObjectIsGivesItWhole(t *testing.T) {
	address := s3Server(t)
	var size atomic.Int64
	for name, answer := range map[string]func(w http.ResponseWriter){
		"in chunks": func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(bytes.Repeat([]byte("x"), int(size.Load())))
		},
		"until it closes": func(w http.ResponseWriter) {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = rw.WriteString(
				"HTTP/1.0 200 OK\r\nETag: \"x\"\r\nLast-Modified: Tue, 01 Sep 2026 10:00:00 GMT\r\n\r\n" +
					strings.Repeat("x", int(size.Load())))
			_, _ = rw.Flush(), c.Close()
		},
	} {
		front := between(t, address, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet {
				return true
			}
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Last-Modified", "Tue, 01 Sep 2026 10:00:00 GMT")
			answer(w)
			return false
		})
		s := openS3(t, s3Options(front.Listener.Addr().String()))
		for _, n := range []int64{0, 100_000} {
			size.Store(n)
			if got, err := s.Get(t.Context(), execution(1)); err != nil || int64(len(got)) != n {
				t.Errorf("%s, %d bytes: %d came, %v", name, n, len(got), err)
			}
		}
	}
}

func TestABucketNeedsAnEndpoint(t *testing.T) {
	for _, endpoint := range []string{"", "127.0.0.1:9000", "ftp://a", "http://", "http://\x00"} {
		if _, err := NewS3(S3Options{Endpoint: endpoint}); err == nil ||
			!strings.Contains(err.Error(), "s3.endpoint is not a URL") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
