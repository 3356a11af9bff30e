package compose

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exchanged is a file of deploy/compose with its addresses exchanged; each of them has to be in it.
func exchanged(t *testing.T, name string, pairs ...string) string {
	t.Helper()
	text := kit.Read(t, kit.Deploy("compose/"+name))
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %q", name, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// legacy starts the sample service.
func legacy(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: deploy/compose/legacy.py is not run")
	}
	address := testkit.FreePort(t)
	host, port, _ := strings.Cut(address, ":")
	service := testkit.Start(t, testkit.Command{Program: python, Args: []string{"-u", kit.Deploy("compose/legacy.py")},
		Env: []string{"HOST=" + host, "PORT=" + port}})
	testkit.Until(t, "the sample service listens", func() bool {
		select {
		case <-service.Done():
			t.Fatalf("it ended: %s%s", service.Stdout, service.Stderr)
		default:
		}
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return address
}

// nginx starts nginx with the configuration of deploy/compose.
func nginx(t *testing.T, hooks [2]string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed: deploy/compose/nginx.conf is not run")
	}
	dir, listen := t.TempDir(), testkit.FreePort(t)
	server := exchanged(t, "nginx.conf", "hooklock-0:8080", hooks[0], "hooklock-1:8080", hooks[1], "listen 80;",
		"listen "+listen+";", "/etc/nginx/webhooks.conf", kit.Deploy("nginx/webhooks.conf"))
	path := filepath.Join(dir, "nginx.conf")
	write(t, path, "daemon off; master_process off; worker_processes 1; pid "+dir+
		"/pid; error_log stderr;\nevents { worker_connections 64; }\nhttp {\naccess_log off;\n"+
		"client_body_temp_path "+dir+"/body; proxy_temp_path "+dir+"/proxy; fastcgi_temp_path "+dir+
		"/f; uwsgi_temp_path "+dir+"/u; scgi_temp_path "+dir+"/s;\n"+server+"}\n")
	testkit.Start(t, testkit.Command{Program: program, Args: []string{"-p", dir, "-c", path, "-e", "stderr"}, Dir: dir})
	return listen
}

func TestTheExampleAnswersADuplicateFromEitherHooklock(t *testing.T) {
	dir := t.TempDir()
	program, err := kit.BuildHooklock(dir)
	if err != nil {
		t.Fatal(err)
	}
	etcd := filepath.Join(dir, "etcd")
	build := exec.Command("go", "build", "-o", etcd, testkit.EtcdPackage)
	build.Dir = kit.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	service := legacy(t)
	members := testkit.StartEtcd(t, etcd, 3)
	pairs := []string{"0.0.0.0:8080", "127.0.0.1:0", "legacy:8081", service}
	for i, m := range members {
		pairs = append(pairs, "http://etcd-"+string(rune('0'+i))+":2379", m.Endpoint)
	}
	config := exchanged(t, "sidecar.yaml", pairs...) + "admin: {listen: \"127.0.0.1:0\"}\n"
	var hooks [2]*testkit.Hooklock
	for i := range hooks {
		// a busy machine is not what this is about
		hooks[i] = testkit.Serve(t, program, config, "HOOKLOCK__ETCD__REQUEST_TIMEOUT=10s")
	}
	front := nginx(t, [2]string{hooks[0].Addr, hooks[1].Addr})
	post := func(id string) (answer struct{ Receipt int }, replayed bool) {
		t.Helper()
		res, err := http.Post("http://"+front+"/hooks/acme", "application/json", strings.NewReader(`{"id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v", res.StatusCode, err)
		}
		return answer, res.Header.Get("Idempotent-Replayed") == "true"
	}
	testkit.Until(t, "nginx listens", func() bool {
		res, err := http.Get("http://" + front + "/")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
	first, replayed := post("evt_1")
	if replayed {
		t.Fatal("the first one is a replay")
	}
	for range 6 { // nginx goes from one to the other
		if again, replayed := post("evt_1"); !replayed || again != first {
			t.Errorf("receipt %d, replayed %v", again.Receipt, replayed)
		}
	}
	if other, replayed := post("evt_2"); replayed || other.Receipt != first.Receipt+1 {
		t.Errorf("receipt %d, replayed %v", other.Receipt, replayed)
	}
	for _, h := range hooks { // each got a delivery
		h.AwaitLine(t, h.Stderr, `"msg":"delivery"`)
	}
	http.DefaultClient.CloseIdleConnections()
}
