package systemd

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

func TestWhatCrashesIsStartedAgainHoweverOften(t *testing.T) {
	m, s := running(t)
	m.delivers("settled", "executed")
	// more than systemd's own limit of starts in 10 s
	for i, signal := range []string{"ABRT", "SEGV", "KILL", "ABRT", "SEGV", "KILL", "ABRT", "SEGV"} {
		pid := m.show("hooklock", "MainPID")
		m.run("kill -" + signal + " " + pid)
		m.await("hooklock", "NRestarts", strconv.Itoa(i+1))
		m.await("hooklock", "ActiveState", "active")
		if now := m.show("hooklock", "MainPID"); now == pid || now == "0" {
			t.Errorf("after SIG%s the process is %s, and was %s", signal, now, pid)
		}
	}
	m.delivers("settled", "replayed")
	m.delivers("another", "executed")
	s.once(t, 2)
}

func TestWhatStandsStillIsEndedAndStartedAgain(t *testing.T) {
	m, s := running(t)
	m.write("/etc/systemd/system/hooklock.service.d/patience.conf", "[Service]\nWatchdogSec=4s\n")
	m.run("systemctl daemon-reload; systemctl restart hooklock")
	m.delivers("settled", "executed")
	pid := m.show("hooklock", "MainPID")
	m.run("kill -STOP " + pid)
	m.await("hooklock", "NRestarts", "1")
	m.await("hooklock", "ActiveState", "active")
	if now := m.show("hooklock", "MainPID"); now == pid {
		t.Error("the frozen process is still there")
	}
	m.delivers("settled", "replayed")
	s.once(t, 1)
}

func TestABadConfigurationIsNotTriedAgain(t *testing.T) {
	m, _ := running(t)
	m.run("systemctl stop hooklock")
	for _, bad := range []string{"nonsense: 1\n", "listen: nowhere\n",
		"routes: [{name: a, path: /a, verify: {scheme: hmac, secret_file: /nowhere}}]\n"} {
		m.write(config, bad)
		m.refuses("systemctl start hooklock")
		if state, code := m.show("hooklock", "ActiveState"), m.show("hooklock", "ExecMainStatus"); state != "failed" ||
			code != "78" {
			t.Errorf("%q: %s with status %s", bad, state, code)
		}
		if n := m.show("hooklock", "NRestarts"); n != "0" {
			t.Errorf("%q: it was started again, %s times", bad, n)
		}
	}
	m.write(config, m.configured(""))
	m.run("systemctl start hooklock")
	m.delivers("mended", "executed")
}

// systemd's own limit are 20 starts in 2 s, which a fast machine reaches. Here it is made certain.
func TestASocketThatSystemdGaveUpIsBackByTheCommandOfThePage(t *testing.T) {
	m, _ := running(t)
	m.write("/etc/systemd/system/hooklock.socket.d/limit.conf",
		"[Socket]\nTriggerLimitIntervalSec=1h\nTriggerLimitBurst=3\n")
	m.run("systemctl daemon-reload")
	m.run(commands(t, replacing, "", 0))
	m.write(config, "nonsense: 1\n")
	m.refuses("systemctl restart hooklock")
	waiting, err := m.dial(t.Context(), "tcp", door)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	m.await("hooklock.socket", "Result", "trigger-limit-hit")
	m.write(config, m.configured(""))
	command := "systemctl start hooklock.socket hooklock"
	if !strings.Contains(kit.Read(t, kit.Deploy("systemd/README.md")), "`"+command+"`") {
		t.Error("the page has another command")
	}
	m.run(command)
	m.await("hooklock.socket", "ActiveState", "active")
	m.delivers("mended", "executed")
	m.run("systemctl restart hooklock")
	m.delivers("again", "executed")
}

func TestTheDoorMayBeASocketForTheGroup(t *testing.T) {
	m, s := running(t)
	m.write(config, strings.Replace(m.configured(""), "listen: "+door, "listen: unix:///run/hooklock/hooklock.sock", 1))
	for range 2 {
		m.run("systemctl restart hooklock")
		if mode := m.run(
			"stat --format '%A %U %G' /run/hooklock/hooklock.sock"); mode != "srw-rw---- hooklock hooklock" {
			t.Errorf("the socket is %s", mode)
		}
	}
	m.run("kill -KILL " + m.show("hooklock", "MainPID"))
	m.await("hooklock", "NRestarts", "1")
	m.await("hooklock", "ActiveState", "active")
	nc, err := net.Dial("unix", fmt.Sprintf("/proc/%d/root/run/hooklock/hooklock.sock", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	c := testkit.NewConn(t, nc)
	c.Say(testkit.Request("/hooks/socket", "{}", "Idempotency-Key: socket"))
	if a := c.Answer("POST"); a.Status != 200 || string(a.Body) != "socket ran 1" {
		t.Errorf("%v", a)
	}
	s.once(t, 1)
}

func TestAnAddressThatIsTakenIsTriedAgainUntilItIsFree(t *testing.T) {
	m, s := running(t)
	m.run("systemctl stop hooklock")
	taken := m.listen(door)
	m.run("systemctl start --no-block hooklock")
	testkit.Until(t, "a second start", func() bool {
		n, _ := strconv.Atoi(m.show("hooklock", "NRestarts"))
		return n > 0
	})
	_ = taken.Close()
	m.await("hooklock", "ActiveState", "active")
	m.delivers("patient", "executed")
	s.once(t, 1)
}

func TestReloadFailsWhereTheConfigurationIsRefused(t *testing.T) {
	m, _ := running(t)
	pid := m.show("hooklock", "MainPID")
	route := func(name string) string {
		return m.configured("") + "  - {name: " + name + ", path: \"/" + name + "/{w}\", workflow: \"" + name +
			"/{path.w}\"}\n"
	}
	m.write(config, route("added"))
	m.run("systemctl reload hooklock")
	for why, text := range map[string]string{
		"is not valid": route("added") + "nonsense: 1\n",
		"needs a restart": strings.Replace(route("added"), "upstream: http://127.0.0.1:8081",
			"upstream: http://127.0.0.1:8082", 1),
		"has another admin": route("added") + "admin: {listen: 127.0.0.1:8070}\n",
		"has a secret missing": route("added") +
			"  - {name: signed, path: /signed, preset: stripe, verify: {secret_file: /nowhere}}\n",
	} {
		m.write(config, text)
		m.refuses("systemctl reload hooklock")
		// it may have noticed the file by itself, and be about to refuse it
		m.await("hooklock", "ActiveState", "active")
		if now := m.show("hooklock", "MainPID"); now != pid {
			t.Errorf("after a reload of what %s it is process %s", why, now)
		}
	}
	m.delivers("still", "executed")
	m.write(config, route("other"))
	m.run("systemctl reload hooklock")
	if routes := m.run("hooklock report"); !strings.Contains(routes, "other") || strings.Contains(routes, "added") {
		t.Errorf("after a reload that went well:\n%s", routes)
	}
}
