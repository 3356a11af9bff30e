package serve

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

func TestLinesForPeopleBeginWithWhatHappened(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newPeopleHandler(&out, cli.Screen{Width: 80}, slog.LevelInfo))
	log.Debug("connection", "error", "none of your business")
	log.With("route", "stripe").Warn("lock.lost", "workflow", "stripe/\x1b[2Jacme", "error", errors.New("gone away"))
	log.Info("stopped")
	log.WithGroup("etcd").Error("etcd.full", "size", 7)
	want := `^\d\d:\d\d:\d\d WARN  lock.lost route=stripe workflow="stripe/\\x1b\[2Jacme" error="gone away"
\d\d:\d\d:\d\d INFO  stopped ?
\d\d:\d\d:\d\d ERROR etcd.full etcd.size=7
$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	slog.New(newPeopleHandler(&out, cli.Screen{Width: 80, Color: true}, slog.LevelInfo)).Error("panic")
	if !bytes.Contains(out.Bytes(), []byte("\x1b[31mERROR\x1b[0m")) {
		t.Errorf("%q", out.String())
	}
}
