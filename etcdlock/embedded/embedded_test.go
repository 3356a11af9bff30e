package embedded

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startIn(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStartsWithinASecondAndKeepsWhatItWasTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	began := time.Now()
	s := startIn(t, dir)
	t.Logf("ready after %v", time.Since(began))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := s.Client().Put(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("second close: %v", err)
	}
	began = time.Now()
	s = startIn(t, dir)
	t.Logf("ready again after %v", time.Since(began))
	got, err := s.Client().Get(ctx, "k")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
		t.Fatalf("%v %v", got, err)
	}
}

func TestListensNowhere(t *testing.T) {
	s := startIn(t, filepath.Join(t.TempDir(), "data"))
	if len(s.etcd.Clients)+len(s.etcd.Peers) != 0 {
		t.Fatalf("%d client and %d peer listeners", len(s.etcd.Clients), len(s.etcd.Peers))
	}
}

func TestItsDirectoryIsForItsUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	startIn(t, dir)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
}

func TestRefusesADirectoryThatIsInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := startIn(t, dir)
	if _, err := Start(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use by another hooklock") {
		t.Fatalf("got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	startIn(t, dir)
}

func TestRefusesADirectoryThatItCannotUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file, filepath.Join(file, "below")} {
		if s, err := Start(Options{Dir: dir}); err == nil {
			_ = s.Close()
			t.Errorf("%q was accepted", dir)
		} else if !strings.Contains(err.Error(), "data_dir") {
			t.Errorf("%q: the error does not say what to set: %v", dir, err)
		}
	}
}

func TestSaysWhyEtcdGaveUp(t *testing.T) {
	var out bytes.Buffer
	flushed := 0
	log := newLogger(slog.New(slog.NewTextHandler(&out, nil)), func() { flushed++ }).With(zap.String("member", "m"))
	log.Info("talk")
	log.Error("disk failed", zap.Int("code", 5))
	if got := out.String(); strings.Contains(got, "talk") || !strings.Contains(got, "disk failed") ||
		!strings.Contains(got, "code=5") || !strings.Contains(got, "member=m") {
		t.Fatalf("got %q", got)
	}
	if flushed != 0 {
		t.Error("an error that ends nothing waits for the log")
	}
	func() {
		defer func() { _ = recover() }()
		log.Panic("damaged")
	}()
	if flushed != 1 || !strings.Contains(out.String(), "damaged") {
		t.Errorf("flushed %d times: the last words may be lost: %q", flushed, out.String())
	}
}

// etcd looks every 30 s for old files to delete, and would end the process where their folder is
// gone: that is too soon to make a backup by hand.
func TestFilesThatAreGoneAreNoReasonToGiveUpWhileTheyCanStillBeCopied(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(slog.New(slog.NewTextHandler(&out, nil)), nil)
	looked := make(chan bool, 1)
	go func() {
		went := false
		defer func() { looked <- went }()
		_, err := os.ReadDir(filepath.Join(t.TempDir(), "gone"))
		giveUp := log.Fatal
		giveUp("failed to purge wal file", zap.Error(err))
		went = true
	}()
	if <-looked || out.String() != "" {
		t.Errorf("the look goes on, or says %q, which etcd.deleted has said", out.String())
	}
	for _, other := range []struct {
		message string
		err     error
	}{{"failed to purge wal file", fs.ErrPermission}, {"failed to create WAL",
		fs.ErrNotExist}, {"failed to purge wal file", nil}} {
		if isHarmless(zapcore.Entry{Level: zapcore.FatalLevel, Message: other.message},
			[]zapcore.Field{zap.Error(other.err)}) {
			t.Errorf("%q with %v ends nothing any more", other.message, other.err)
		}
	}
}
