package serve

import (
	"bytes"
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
)

// opened is the log of a server at level error, and what it wrote by its end.
func opened(t *testing.T, format config.LogFormat, use func(*ServerLog)) string {
	t.Helper()
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	var text bytes.Buffer
	e := &cli.Environment{Stderr: &text}
	use(OpenLog(e, &config.Loaded{Config: &config.Config{Log: config.Log{Level: "error", Format: format}}}))
	e.Close()
	return text.String()
}

func TestLostLinesAreSaidAtAnyLevelInTheConfiguredFormat(t *testing.T) {
	for format, want := range map[config.LogFormat]string{config.LogJSON: `"level":"WARN","msg":"log.lost","lines":3}` +
		"\n", config.LogText: "level=WARN msg=log.lost lines=3\n"} {
		opened(t, format, func(l *ServerLog) {
			if got := string(l.Lost(3)); !strings.HasSuffix(got, want) {
				t.Errorf("%s: %s", format, got)
			}
		})
	}
}

func TestTheLineOfAChangeIsWrittenWhateverTheLevel(t *testing.T) {
	got := opened(t, config.LogJSON, func(l *ServerLog) {
		l.Warn("below the level")
		line, release, err := l.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		line.Info("admin.audit")
	})
	if !strings.Contains(got, `"msg":"admin.audit"`) || strings.Contains(got, "below") {
		t.Errorf("%s", got)
	}
}

func TestWhatLibrariesSayToStandardErrorGoesThroughTheLog(t *testing.T) {
	got := opened(t, config.LogJSON, func(*ServerLog) {
		log.Print("said by a library")
		_, _ = io.WriteString(whereLibrariesLog{}, "said by gRPC\n")
	})
	if !strings.Contains(got, "said by a library\n") || !strings.HasSuffix(got, "\nsaid by gRPC\n") {
		t.Errorf("%s", got)
	}
}
