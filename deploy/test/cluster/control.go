//go:build linux

package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"hooklock/test/testkit"
)

// Where things are in the network namespace that the tests have for themselves.
const (
	apiServer = "https://127.0.0.1:6443"
	hostIP    = "10.244.0.1" // the first address of the pods' network
	token     = "administrator-of-a-cluster-that-lives-for-minutes"
)

// Control is a running control plane.
type Control struct {
	API        *rest.Config
	Kubeconfig string // a file for kubectl, helm and Traefik
}

// StartControl starts etcd, the API server, the controller manager and the scheduler for tb, and
// waits until they are ready.
func StartControl(tb testing.TB, paths map[string]string) *Control {
	tb.Helper()
	dir := tb.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	accounts := file("accounts.key",
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	c := &Control{
		API: &rest.Config{Host: apiServer, BearerToken: token, QPS: 100, Burst: 200,
			TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		Kubeconfig: file("kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "it",
  "clusters": [{"name": "it", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}],
  "users": [{"name": "it", "user": {"token": %q}}],
  "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}`, apiServer, token)),
	}
	etcd := testkit.StartEtcd(tb, paths["etcd"], 1)[0]
	start := func(name string, args ...string) *testkit.Process {
		log, err := os.Create(filepath.Join(logs(), name+".log"))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = log.Close() })
		return testkit.Start(tb, testkit.Command{Program: paths[name], Args: args, Stderr: log})
	}
	start("kube-apiserver", "--etcd-servers", etcd.Endpoint, "--cert-dir", dir, "--bind-address", "127.0.0.1",
		"--secure-port", "6443",
		"--advertise-address", hostIP, "--token-auth-file", file("tokens.csv", token+`,admin,1,"system:masters"`+"\n"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", accounts,
		"--service-account-signing-key-file", accounts,
		"--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "RBAC", "--allow-privileged",
		"--watch-cache=true", "-v", "1")
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // its own, on the loopback
	defer client.CloseIdleConnections()
	ready := func(url string) func() bool {
		return func() bool {
			req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				tb.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			res, err := client.Do(req)
			if err != nil {
				return false
			}
			defer res.Body.Close()
			return res.StatusCode == http.StatusOK
		}
	}
	Await(tb, "the API server is ready", ready(apiServer+"/readyz"))
	start("kube-controller-manager", "--kubeconfig", c.Kubeconfig, "--service-account-private-key-file", accounts,
		"--leader-elect=false",
		"--cert-dir", dir, "--bind-address", "127.0.0.1", "--authentication-skip-lookup",
		"--concurrent-deployment-syncs", "5")
	start("kube-scheduler", "--kubeconfig", c.Kubeconfig, "--leader-elect=false", "--bind-address", "127.0.0.1",
		"--authentication-skip-lookup")
	Await(tb, "the controller manager runs", ready("https://127.0.0.1:10257/healthz"))
	Await(tb, "the scheduler runs", ready("https://127.0.0.1:10259/healthz"))
	return c
}

// patience is how long anything here is waited for: a control plane on a busy machine takes its
// time.
const patience = 4 * time.Minute

// Await asks check again and again until it says yes, or fails.
func Await(tb testing.TB, what string, check func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(patience); !check(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("waited %v in vain for: %s", patience, what)
		}
	}
}

const logsVariable = "HOOKLOCK_CLUSTER_LOGS"

// logs is where the programs write to.
func logs() string { return os.Getenv(logsVariable) }
