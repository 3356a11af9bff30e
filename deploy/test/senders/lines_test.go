package senders

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// startKannel starts a gateway for text messages; an event is a message that arrives.
func startKannel(t *testing.T, url string) func(t *testing.T, name string) {
	t.Helper()
	bearerbox, smsbox := testkit.Program(t, "bearerbox"), testkit.Program(t, "smsbox")
	var ports []any
	for range 3 {
		_, port, _ := strings.Cut(testkit.FreePort(t), ":")
		ports = append(ports, port)
	}
	config := write(t, "kannel.conf", fmt.Sprintf(`
group = core
admin-port = %[1]s
admin-password = secret
admin-interface = 127.0.0.1
smsbox-port = %[2]s

group = smsc
smsc = fake
host = 127.0.0.1
port = %[3]s
connect-allow-ip = 127.0.0.1

group = smsbox
bearerbox-host = 127.0.0.1
bearerbox-port = %[2]s
http-request-retry = 3
http-queue-delay = 1

group = sms-service
keyword = default
get-url = "%[4]s?text=%%a&id=%%I"
catch-all = true
`, append(ports, url)...))
	bearer := testkit.Start(t, testkit.Command{Program: bearerbox, Args: []string{config}})
	boxes, centre := fmt.Sprintf("127.0.0.1:%s", ports[1]), fmt.Sprintf("127.0.0.1:%s", ports[2])
	await(t, bearer, boxes)
	testkit.Start(t, testkit.Command{Program: smsbox, Args: []string{config}})
	await(t, bearer, centre)
	c := testkit.Dial(t, centre) // the centre of the provider, in a protocol of lines
	return func(t *testing.T, name string) {
		t.Helper()
		if _, err := fmt.Fprintf(c, "123 456 text %s\n", name); err != nil {
			t.Fatal(err)
		}
	}
}

// startSyslogNG starts one that passes on each line as a request.
func startSyslogNG(t *testing.T, url string) func(t *testing.T, name string) {
	t.Helper()
	program, addr, dir := testkit.Program(t, "syslog-ng"), testkit.FreePort(t), t.TempDir()
	_, port, _ := strings.Cut(addr, ":")
	config := write(t, "syslog-ng.conf", fmt.Sprintf(`@version: 3.38
options { use-uniqid(yes); time-reopen(1); };
source lines { network(ip("127.0.0.1") port(%s) transport("tcp") flags(no-parse)); };
destination service { http(url(%q) method("POST") headers("Content-Type: application/json") batch-lines(1) retries(10)
  body('$(format-json --scope none id="${UNIQID}" message="${MESSAGE}")')); };
log { source(lines); destination(service); };
`, port, url))
	p := testkit.Start(t, testkit.Command{Program: program,
		Args: []string{"-F", "--no-caps", "-f", config, "-R", filepath.Join(dir, "persist"),
			"-p", filepath.Join(dir, "pid"), "-c", filepath.Join(dir, "ctl")}})
	await(t, p, addr)
	return func(t *testing.T, name string) {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(c, name); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

// cutsOff is a service that runs the first event and closes the connection in place of an answer.
func cutsOff(t *testing.T, first string, each time.Duration) *testkit.Upstream {
	t.Helper()
	cut := make(chan struct{}, 1)
	return testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.Contains(r.Raw, first) {
			select {
			case cut <- struct{}{}:
				return ""
			default:
			}
		}
		select {
		case <-r.Context.Done():
			return ""
		case <-time.After(each): // the work of the service
		}
		return testkit.OK("{}")
	})
}

// Kannel sends GET, three times at most: an answer that was cut off is tried again within them, and
// what came meanwhile waits its turn.
func TestEachTextMessageRunsThoughAnAnswerIsCutOff(t *testing.T) {
	service := cutsOff(t, "text=first", 500*time.Millisecond)
	_, to := front(t, "self-hosted", "kannel", service)
	send := startKannel(t, to)
	for _, text := range []string{"first", "second", "third"} {
		send(t, text)
	}
	var ran []string
	ids := map[string]bool{}
	for _, r := range service.AwaitReceived(t, "", 4) {
		u, err := url.Parse(r.Target)
		if err != nil {
			t.Fatal(err)
		}
		ran = append(ran, u.Query().Get("text"))
		ids[u.Query().Get("id")] = true
	}
	slices.Sort(ran)
	if text := strings.Join(ran, " "); text != "first "+"first second third" || len(ids) != 3 {
		t.Errorf("it ran %s, with %d IDs", text, len(ids))
	}
	if n := service.MostAtOnce("kannel"); n != 1 {
		t.Errorf("%d ran at once", n)
	}
}

func TestEqualLinesOfALogEachRunOnceOneAtATime(t *testing.T) {
	service, send := behind(t, "syslog-ng", 200*time.Millisecond)
	for _, line := range []string{"1", "same", "same", "2"} {
		send(line)
	}
	service.AwaitReceived(t, "", 4)
	if ran := events(t, service); len(ran) != 4 { // each has an ID of its own
		t.Errorf("%d lines ran: %v", len(ran), ran)
	}
	if n := service.MostAtOnce("syslog"); n != 1 {
		t.Errorf("%d ran at once", n)
	}
}
