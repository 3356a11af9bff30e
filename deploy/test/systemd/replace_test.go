package systemd

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// commands is the block number n of a section of docs/operations.md.
func commands(t *testing.T, section, language string, n int) string {
	t.Helper()
	_, text, found := strings.Cut(kit.Read(t, kit.Root()+"/docs/operations.md"), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var blocks []string
	for _, block := range regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if block[1] == language {
			blocks = append(blocks, block[2])
		}
	}
	if !found || len(blocks) <= n {
		t.Fatalf("docs/operations.md, %s: %d blocks in %q", section, len(blocks), language)
	}
	return blocks[n]
}

const (
	replacing = "Replacing a process on one host"
	growing   = "From one replica to many"
)

func TestARestartBehindTheSocketRefusesNoConnection(t *testing.T) {
	m, s := running(t)
	m.run(commands(t, replacing, "", 0))
	m.run("systemctl is-active hooklock.socket hooklock")
	stop := m.senders(4)
	for range 3 {
		m.run("systemctl restart hooklock")
	}
	m.install(newPackage)
	if events, failures := stop(); failures > 0 || events == 0 {
		t.Errorf("of %d events, %d tries were refused or cut off", events, failures)
	} else {
		s.once(t, events)
	}
	m.run("systemctl stop hooklock") // systemd starts it again for whoever comes
	m.delivers("wakes", "executed")
	m.run("systemctl is-active hooklock")
}

// startEtcd starts a member in the machine, as the page says, and waits until it answers at its
// client URL.
func (m *machine) startEtcd(name, line string) {
	m.t.Helper()
	m.run("systemd-run --quiet --unit " + name + " --service-type notify " + strings.TrimSpace(line))
}

func TestInstancesAreReplacedWithoutAPause(t *testing.T) {
	m, s := running(t)
	m.put(etcdProgram, "/usr/local/bin/etcd")
	m.startEtcd("etcd",
		"/usr/local/bin/etcd --name one --data-dir /var/lib/etcd --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380"+
			" --initial-cluster one=http://127.0.0.1:2380 --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --log-level error")
	m.run("systemctl disable --now hooklock")
	m.write(config, m.configured("etcd: {endpoints: [\"http://127.0.0.1:2379\"]}\nshutdown_delay: 2s"))
	m.run("systemctl enable --now hooklock.socket; systemctl start hooklock@8079")
	stop := m.senders(8)
	there := strings.NewReplacer("8078", "8079", "8079", "8078")
	lines := commands(t, replacing, "", 1)
	for range 3 {
		m.run(lines)
		lines = there.Replace(lines)
	}
	events, failures := stop()
	if failures > 0 || events == 0 {
		t.Errorf("of %d events, %d tries were refused or cut off", events, failures)
	}
	s.once(t, events)
	t.Logf("%d events", events)
	if state, _ := m.try("systemctl is-active hooklock@8078 hooklock@8079 hooklock"); strings.Join(
		strings.Fields(state), " ") != "active inactive inactive" {
		t.Errorf("hooklock@8078, hooklock@8079 and hooklock are %s", state)
	}
	m.run("systemctl reload hooklock@8078")
}

func TestTheEmbeddedEtcdMovesToAClusterByTheCommandsOfThePage(t *testing.T) {
	m, s := running(t)
	m.delivers("earlier", "executed")
	m.put(etcdProgram, "/usr/local/bin/etcd")
	plain := strings.NewReplacer("https://", "http://")
	m.addresses("10.0.0.1", "10.0.0.2", "10.0.0.3")
	m.run(plain.Replace(commands(t, growing, "", 0)))
	member := plain.Replace(commands(t, growing, "", 1))
	for i := range 3 { // all at once: each waits for the others
		go func() {
			line := strings.NewReplacer("etcd-0", fmt.Sprintf("etcd-%d", i), "10.0.0.1", fmt.Sprintf("10.0.0.%d", i+1),
				"etcd --name", "/usr/local/bin/etcd --name").Replace(member)
			_, _ = m.try(fmt.Sprintf("systemd-run --quiet --unit etcd-%d --no-block %s", i, strings.TrimSpace(line)))
		}()
	}
	m.write(config, m.configured(strings.TrimSpace(plain.Replace(commands(t, growing, "yaml", 0)))))
	doctor, start, _ := strings.Cut(commands(t, growing, "", 2), "\n")
	testkit.Until(t, "doctor finds the cluster well", func() bool {
		_, err := m.try(doctor)
		return err == nil
	})
	m.run(start)
	m.delivers("earlier", "replayed")
	m.delivers("later", "executed")
	s.once(t, 2)
}
