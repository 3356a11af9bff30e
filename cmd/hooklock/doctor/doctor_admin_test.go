package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/admin"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/etcdlock/etcdtest"
)

func TestDoctorJudgesWhoCanReadTheTokens(t *testing.T) {
	dir, good := t.TempDir(), "hooklock_token"+strings.Repeat("x", 30)
	generated := filepath.Join(dir, admin.TokenFile)
	for _, c := range []struct {
		name   string
		mode   os.FileMode
		text   string
		result diagnose.Result
		says   string
	}{
		{"as it was made", 0o600, good + "\n", diagnose.OK, "has mode 0600"},
		{"of a volume with a group", 0o660, good + "\n", diagnose.OK, "has mode 0660"},
		{"of everybody", 0o644, good + "\n", diagnose.Failed,
			"remove the file, and a new one is made; a hooklock that starts with it takes no changes"},
		{"empty", 0o600, "\n", diagnose.Failed, "holds no token; remove the file"},
		{"cut off", 0o600, "hooklock_token\n", diagnose.Failed, "holds no token; remove the file"},
		{"two lines", 0o600, good + "\n" + good + "\n", diagnose.Failed, "holds no token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(generated, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(generated, c.mode); err != nil {
				t.Fatal(err)
			}
			for _, f := range tokenFindings(&config.Config{DataDir: dir}) {
				if f.Result != c.result || !strings.Contains(f.Found+"; "+f.Advice, c.says) {
					t.Errorf("got %+v", f)
				}
				if strings.Contains(f.Found, "hooklock_token") {
					t.Errorf("the token is in %+v", f)
				}
			}
		})
	}
	linked := t.TempDir()
	if err := os.Symlink(write(t, "elsewhere.token", good), filepath.Join(linked, admin.TokenFile)); err != nil {
		t.Fatal(err)
	}
	if f := tokenFindings(&config.Config{DataDir: linked})[0]; f.Result != diagnose.Failed ||
		!strings.Contains(f.Found, "remove the file") {
		t.Errorf("got %+v", f)
	}
	if f := tokenFindings(&config.Config{DataDir: t.TempDir()})[0]; f.Result != diagnose.OK ||
		!strings.Contains(f.Found, "will be made at the start") {
		t.Errorf("got %+v", f)
	}
	open := write(t, "ops.token", "secret\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	findings := tokenFindings(&config.Config{Admin: config.Admin{Tokens: []config.Token{
		{Name: "ops", TokenFile: open}, {Name: "ci", TokenEnv: "CI_TOKEN"}, {Name: "away", TokenFile: open + ".none"},
		{Name: "dir", TokenFile: t.TempDir()},
	}}})
	for i, want := range []struct {
		result diagnose.Result
		says   string
	}{
		{diagnose.Warning, "chmod 600"}, {diagnose.OK, "CI_TOKEN"}, {diagnose.Failed, "correct its name"},
		{diagnose.Failed, "is no file"},
	} {
		if f := findings[i]; f.Result != want.result || !strings.Contains(f.Found+"; "+f.Advice, want.says) {
			t.Errorf("got %+v", f)
		}
	}
}

// hooklockLike answers as a hooklock does that knows one token.
func hooklockLike(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/livez" || r.URL.Path == "/readyz":
		_, _ = io.WriteString(w, "ok\n")
		return
	case r.URL.Path != "/v1/locks":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type":"urn:hooklock:problem:not_found"}`)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if token := r.Header.Get("Authorization"); token != "" && token != "Bearer right" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":"unauthorized","detail":"the token is not known here"}`)
		return
	}
	_, _ = io.WriteString(w, `{"locks":[],"nextCursor":""}`)
}

func TestDoctorAsksARunningHooklockAsTheCommandsDo(t *testing.T) {
	plainServer := httptest.NewServer(http.HandlerFunc(hooklockLike))
	defer plainServer.Close()
	authority := etcdtest.NewAuthority(t)
	cert := authority.Issue("admin")
	pair, err := tls.LoadX509KeyPair(cert.CertFile, cert.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	secure := func(clients bool) string {
		server := httptest.NewUnstartedServer(http.HandlerFunc(hooklockLike))
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
		server.Config.ErrorLog = nil
		if clients {
			pem, err := os.ReadFile(authority.CAFile)
			if err != nil {
				t.Fatal(err)
			}
			server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			server.TLS.ClientCAs.AppendCertsFromPEM(pem)
		}
		server.StartTLS()
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "https://")
	}
	address := strings.TrimPrefix(plainServer.URL, "http://")
	right, wrong := write(t, admin.TokenFile, "right\n"), write(t, admin.TokenFile, "wrong\n")
	ownTLS := config.AdminTLS{CertFile: cert.CertFile, KeyFile: cert.KeyFile}
	mutual := ownTLS
	mutual.ClientCAFile = authority.CAFile
	for _, c := range []struct {
		name   string
		admin  config.Admin
		dir    string
		result diagnose.Result
		says   string
	}{
		{"without a token", config.Admin{Listen: address}, t.TempDir(), diagnose.OK, "it answers without a token"},
		{"with its own", config.Admin{Listen: address}, filepath.Dir(right), diagnose.OK, "it answers the token in " +
			right},
		{"with another's", config.Admin{Listen: address}, filepath.Dir(wrong), diagnose.Failed,
			"it does not know the token in " + wrong},
		{"over TLS", config.Admin{Listen: secure(false), TLS: ownTLS}, t.TempDir(), diagnose.OK, "it answers"},
		{"with certificates of clients", config.Admin{Listen: secure(true), TLS: mutual}, t.TempDir(), diagnose.Skipped,
			"--cert-file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := &config.Config{DataDir: c.dir, Admin: c.admin}
			if f, is := runningAdmin(t.Context(), conf); !is || f.Result != diagnose.OK {
				t.Errorf("it is not found to run: %+v", f)
			}
			if f := apiFinding(t.Context(), conf); f.Result != c.result ||
				!strings.Contains(f.Found+"; "+f.Advice, c.says) {
				t.Errorf("got %+v", f)
			}
		})
	}
	for name, conf := range map[string]*config.Config{
		"no TLS there":        {Admin: config.Admin{Listen: address, TLS: ownTLS}},
		"a port to be picked": {Admin: config.Admin{Listen: "127.0.0.1:0"}},
		"nothing there":       {Admin: config.Admin{Listen: "127.0.0.1:1", TLS: mutual}},
	} {
		if f, is := runningAdmin(t.Context(), conf); is {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := certificateFinding("admin certificate", cert.CertFile, cert.KeyFile); f.Result != diagnose.Warning ||
		f.Advice != "renew it" {
		t.Errorf("got %+v", f)
	}
	if f := certificateFinding("admin certificate", cert.KeyFile, cert.KeyFile); f.Result != diagnose.Failed {
		t.Errorf("got %+v", f)
	}
}

func TestEachCertificateOfOursIsLookedAt(t *testing.T) {
	cert := etcdtest.NewAuthority(t).Issue("127.0.0.1")
	ours := config.ClientTLS{CertFile: cert.CertFile, KeyFile: cert.KeyFile}
	c := &config.Config{
		DataDir: t.TempDir(), Listen: config.Listen{TLS: config.ServerTLS{CertFile: cert.CertFile,
			KeyFile: cert.KeyFile}},
		Admin: config.Admin{TLS: config.AdminTLS{CertFile: cert.CertFile, KeyFile: cert.KeyFile}},
		Etcd:  config.Etcd{TLS: ours}, Upstream: config.Upstream{TLS: ours},
		ParkStore: config.ParkStore{S3: config.S3{TLS: ours}},
	}
	looked := map[string]diagnose.Result{}
	for _, f := range adminFindings(t.Context(), c, false) {
		looked[f.Check] = f.Result
	}
	for _, name := range []string{"listen", "admin", "etcd", "upstream", "park_store.s3"} {
		if looked[name+" certificate"] != diagnose.Warning { // it ends in an hour
			t.Errorf("%s certificate: %q", name, looked[name+" certificate"])
		}
	}
}

// write makes a file of that text, which is the test's.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
