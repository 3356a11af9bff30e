package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePackageIsInstalledUpgradedAndRemoved(t *testing.T) {
	m := boot(t)
	s := m.serveAt("127.0.0.1:8081")

	m.install(oldPackage)
	if state, _ := m.try("systemctl is-active hooklock"); state != "inactive\n" {
		t.Errorf("it was started by its installation: %s", state)
	}
	if user := m.run("getent passwd hooklock"); !strings.Contains(user, "/var/lib/hooklock:/usr/sbin/nologin") {
		t.Errorf("its user: %s", user)
	}
	m.run("hooklock validate --config " + config)

	m.write(config, m.configured("# mine"))
	m.run("systemctl enable --now hooklock")
	if version := m.run("hooklock version"); !strings.Contains(version, "v0.0.1") {
		t.Errorf("%s", version)
	}
	m.delivers("before", "executed")
	pid := m.show("hooklock", "MainPID")

	m.install(newPackage)
	if version := m.run("readlink /proc/" + m.show("hooklock", "MainPID") +
		"/exe; hooklock version"); !strings.Contains(version, "v0.0.2") || strings.Contains(version, "deleted") {
		t.Errorf("after the upgrade: %s", version)
	}
	if m.show("hooklock", "MainPID") == pid {
		t.Error("the old program still runs")
	}
	if !strings.Contains(m.read(config), "# mine") {
		t.Error("the upgrade replaced my configuration")
	}
	m.delivers("before", "replayed")
	m.delivers("after", "executed")
	s.once(t, 2)

	m.run("dpkg --remove hooklock")
	if state, _ := m.try("systemctl is-active hooklock"); strings.HasPrefix(state, "active") {
		t.Errorf("after its removal it is %s", state)
	}
	if _, err := m.deliver(door, "gone"); err == nil {
		t.Error("somebody still listens")
	}
	m.run("test -e " + config + "; test -d /var/lib/hooklock/etcd")

	m.run("dpkg --purge hooklock")
	for _, path := range []string{config, "/usr/bin/hooklock", "/usr/lib/systemd/system/hooklock.service"} {
		if _, err := os.Lstat(filepath.Join(m.root, path)); !os.IsNotExist(err) {
			t.Errorf("%s is left behind: %v", path, err)
		}
	}
	m.run("test -d /var/lib/hooklock/etcd") // which events ran: nobody but a person removes that
	if failed := m.run("systemctl list-units --failed --no-legend"); failed != "" {
		t.Errorf("units that failed: %s", failed)
	}

	m.install(newPackage)
	m.write(config, m.configured(""))
	m.run("systemctl enable --now hooklock")
	m.delivers("before", "replayed")
}
