package link

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
)

func TestThePoolReportsTheReleaseOfEachMember(t *testing.T) {
	e := etcdtest.Start(t)
	p, err := OpenPool(&Target{Endpoints: []string{e.Endpoint, "127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	version, err := p.readRelease(t.Context(), e.Endpoint)
	if err != nil || CheckRelease(version) != nil {
		t.Errorf("%q %v", version, err)
	}
	if version, err := p.readRelease(t.Context(), "127.0.0.1:1"); err == nil {
		t.Errorf("nobody listens there, and is %q", version)
	}
	if _, at, _ := p.Current(); at != 0 {
		t.Error("the question to one member gave up another one")
	}
}

// No test here can start an etcd that is too old: this module has one release of it. So the answer
// is made up.
func TestAMemberThatIsTooOldIsWarnedAboutOnceWithTheReason(t *testing.T) {
	var log bytes.Buffer
	r := NewReleases(nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		r.warnOnce("a:2379", "3.6.10")
		r.warnOnce("b:2379", "3.7.3")
	}
	text := log.String()
	if strings.Count(text, "etcd.release") != 1 || !strings.Contains(text, "endpoint=a:2379") ||
		!strings.Contains(text, "release=3.6.10") ||
		!strings.Contains(text, "past the permissions of a role") || !strings.Contains(text, NewEnough) {
		t.Errorf("got %s", text)
	}
	r.warnOnce("a:2379", "3.5.1") // a roll-back
	if strings.Count(log.String(), "etcd.release") != 2 {
		t.Errorf("got %s", log.String())
	}
}
