package senders

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// startDovecot prepares a mailbox; an event is a message that is delivered to it. send returns when
// the delivery has ended, which waits for the answer.
func startDovecot(t *testing.T, url string) (send func(t *testing.T, name string)) {
	t.Helper()
	const lda = "/usr/lib/dovecot/dovecot-lda"
	if _, err := os.Stat(lda); err != nil {
		t.Skipf("Dovecot is not installed, so it is not tested: %v", err)
	}
	doveadm := testkit.Program(t, "doveadm")
	dir, err := os.MkdirTemp("", "dovecot") // t.TempDir is closed to the user that it runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	config := filepath.Join(dir, "dovecot.conf")
	if err := os.WriteFile(config, []byte(fmt.Sprintf(`
base_dir = %[1]s/run
state_dir = %[1]s/state
log_path = %[1]s/log
ssl = no
mail_home = %[1]s
mail_location = maildir:%[1]s/mail
mail_attribute_dict = file:%[1]s/attributes
mail_plugins = notify push_notification
first_valid_uid = 1
plugin {
  push_notification_driver = ox:url=%[2]s user_from_metadata
}
`, dir, url)), 0o644); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	run := func(t *testing.T, input string, args ...string) {
		t.Helper()
		if os.Geteuid() == 0 { // no mail is root's
			args = append([]string{testkit.Program(t, "setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"},
				args...)
		}
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Dir, c.Stdin, c.Env = dir, strings.NewReader(input),
			[]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "USER=user"}
		if said, err := c.CombinedOutput(); err != nil {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("%v: %v\n%s\n%s", args, err, said, text)
		}
	}
	run(t, "", doveadm, "-c", config, "mailbox", "metadata", "set", "-s", "",
		"/private/vendor/vendor.dovecot/http-notify", "user=11@3")
	return func(t *testing.T, name string) {
		t.Helper()
		run(t, "From: sender@example.com\nTo: user@example.com\nSubject: "+name+"\n\ntext\n", lda, "-c", config, "-e")
	}
}

// Dovecot waits two seconds for an answer, and sends a refused event never again: the first here
// takes longer, and the second is refused.
func TestEachMailRunsInAServiceThatIsSlowOrRefuses(t *testing.T) {
	var refused atomic.Bool
	service := testkit.NewUpstream(t, func(r *testkit.Received) string {
		switch {
		case strings.Contains(r.Body, `"subject":"slow"`):
			select {
			case <-r.Context.Done():
				return ""
			case <-time.After(3 * time.Second): // the work of the service
			}
		case strings.Contains(r.Body, `"subject":"refused"`) && !refused.Swap(true):
			return testkit.Reply(503, "")
		}
		return testkit.OK("{}")
	})
	h, to := front(t, "self-hosted", "dovecot", service)
	send := startDovecot(t, to)
	for _, subject := range []string{"slow", "refused", "equal", "equal"} {
		send(t, subject)
	}
	times := map[string]int{}
	for _, r := range service.AwaitReceived(t, "", 5) {
		var mail struct {
			User, Event, Folder, Subject string
			Validity                     int `json:"imap-uidvalidity"`
			UID                          int `json:"imap-uid"`
		}
		if err := json.Unmarshal([]byte(r.Body), &mail); err != nil {
			t.Fatal(err)
		}
		times[mail.Subject]++
		// The route's event ID.
		h.AwaitLine(t, h.Stderr, fmt.Sprintf(`"event_id":"%s/%s/%d/%d"`, mail.User, mail.Folder, mail.Validity,
			mail.UID))
	}
	if fmt.Sprint(times) != "map[equal:2 refused:2 slow:1]" {
		t.Errorf("it ran %v", times)
	}
	if n := service.MostAtOnce("dovecot"); n != 1 {
		t.Errorf("%d ran at once", n)
	}
}
