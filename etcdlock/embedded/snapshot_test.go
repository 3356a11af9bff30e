package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func put(t *testing.T, s *Server, key, value string) (revision int64) {
	t.Helper()
	answer, err := s.Client().Put(within(t), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Revision
}

func value(t *testing.T, s *Server, key string) string {
	t.Helper()
	got, err := s.Client().Get(within(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

// backup saves a snapshot of s and returns its file.
func backup(t *testing.T, s *Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.db")
	if _, err := Save(file, func(w io.Writer) error {
		r, err := s.Snapshot(within(t))
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(w, r)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return file
}

func restore(t *testing.T, o RestoreOptions) Restored {
	t.Helper()
	done, err := Restore(o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

var someday = time.Date(2026, 11, 22, 4, 5, 6, 0, time.UTC)

func TestWhatABackupHasIsThereAfterARestoreAndRevisionsGrow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startIn(t, dir)
	before := put(t, s, "k", "in the backup")
	file := backup(t, s)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	last := put(t, s, "k", "after the backup")
	stop(t, s)
	if _, err := Restore(RestoreOptions{File: file, Dir: dir, Now: someday}); err == nil ||
		!strings.Contains(err.Error(), "has data") {
		t.Fatalf("over data: %v", err)
	}
	done := restore(t, RestoreOptions{File: file, Dir: dir, Replace: true, Now: someday})
	s = startIn(t, dir)
	if got := value(t, s, "k"); got != "in the backup" {
		t.Errorf("got %q", got)
	}
	after := put(t, s, "k2", "new")
	if after <= last || after <= done.Revision || done.Revision < before+bump {
		t.Errorf("revision %d of the backup, %d before, %d restored, %d after", before, last, done.Revision, after)
	}
	stop(t, s)

	// What was there is whole, beside it.
	if want := dir + ".before-20261122T040506.000000Z"; done.Kept != want {
		t.Errorf("kept in %s", done.Kept)
	}
	old := filepath.Join(t.TempDir(), "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(done.Kept, filepath.Join(old, "member")); err != nil {
		t.Fatal(err)
	}
	if got := value(t, startIn(t, old), "k"); got != "after the backup" {
		t.Errorf("kept %q", got)
	}
	if left, err := filepath.Glob(dir + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
}

func TestTheSecondRestoreOfOneBackupGoesBeyondWhatTheFirstGaveOut(t *testing.T) {
	s := startIn(t, filepath.Join(t.TempDir(), "data"))
	put(t, s, "k", "v")
	file := backup(t, s)
	var last int64
	for n := range 3 {
		dir := filepath.Join(t.TempDir(), "data") // the one before is lost
		restore(t, RestoreOptions{File: file, Dir: dir, Now: someday.Add(time.Duration(n) * time.Second)})
		again := startIn(t, dir)
		first := put(t, again, "k", "v")
		if first <= last {
			t.Errorf("restore %d: revision %d after %d", n, first, last)
		}
		last = put(t, again, "k", "v")
	}
}

func TestAClockThatIsBehindDoesNotTakeRevisionsBack(t *testing.T) {
	s := startIn(t, filepath.Join(t.TempDir(), "data"))
	before := put(t, s, "k", "v")
	done := restore(t, RestoreOptions{File: backup(t, s), Dir: filepath.Join(t.TempDir(), "data"),
		Now: time.Unix(0, 0)})
	if done.Revision != before+bump {
		t.Errorf("%d after %d", done.Revision, before)
	}
}

func TestARestoreFromADamagedBackupChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startIn(t, dir)
	put(t, s, "k", "v")
	file := backup(t, s)
	if _, err := Restore(RestoreOptions{File: file, Dir: dir, Replace: true, Now: someday}); err == nil ||
		!strings.Contains(err.Error(), "in use by another hooklock") {
		t.Errorf("while it runs: %v", err)
	}
	stop(t, s)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)/2] ^= 1
	for what, content := range map[string][]byte{"cut off": good[:len(good)-512], "damaged": flipped,
		"checksum is missing": []byte("no backup"), "": nil} {
		bad := filepath.Join(t.TempDir(), "bad.db")
		if content != nil {
			if err := os.WriteFile(bad, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Restore(RestoreOptions{File: bad, Dir: dir, Replace: true, Now: someday}); err == nil ||
			!strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left, err := filepath.Glob(dir + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
	if got := value(t, startIn(t, dir), "k"); got != "v" {
		t.Errorf("got %q", got)
	}
}

func TestABackupReplacesTheOneBeforeOnlyWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.db")
	if err := os.WriteFile(file, []byte("the one before"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for _, fill := range []func(io.Writer) error{
		func(io.Writer) error { return broken },
		func(w io.Writer) error { _, err := io.WriteString(w, "half of it"); return err },
	} {
		if _, err := Save(file, fill); err == nil {
			t.Error("it was taken")
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "the one before" {
		t.Errorf("%q %v", got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v %v", left, err)
	}
}

func TestADefragmentationWaitsForASnapshotThatIsRead(t *testing.T) {
	s, log := small(t, filepath.Join(t.TempDir(), "data"), never)
	fill(t, s, func(int) string { return "the same key" })
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	r, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * tidyRest { // as often as it likes: it does not wait here either
		if err := s.tidier.tidyOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(log.String(), "etcd.defragmented") {
		t.Error("it was defragmented")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for s.tidier.measureSpace().Full {
		if err := s.tidier.tidyOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheBackupOfAFullEtcdDoesNotStayFull(t *testing.T) {
	s, _ := small(t, filepath.Join(t.TempDir(), "data"), never)
	fill(t, s, func(int) string { return "the same key" })
	dir := filepath.Join(t.TempDir(), "data")
	restore(t, RestoreOptions{File: backup(t, s), Dir: dir, Now: someday})
	s, _ = small(t, dir, 50*time.Millisecond)
	awaitRoom(t, s)
}

func TestAnExportIsRefusedWhereItWouldLoseSomething(t *testing.T) {
	members := []Member{{"m0", "http://127.0.0.1:1"}}
	to := t.TempDir()
	export := func(dir string) error {
		_, err := Export(within(t), Options{Dir: dir}, to, members, someday)
		return err
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := export(dir); err == nil || !strings.Contains(err.Error(), "data_dir") {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it made the data directory")
	}
	s := startIn(t, dir)
	if err := export(dir); !errors.Is(err, ErrInUse) || !strings.Contains(fmt.Sprint(err), "stop it first") {
		t.Errorf("while it runs: %v", err)
	}
	stop(t, s)
	if err := export(dir); err != nil {
		t.Error(err)
	}
	if err := export(dir); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("twice: %v", err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("left %v %v", left, err)
	}
}

func TestMembersAreReadStrictly(t *testing.T) {
	got, err := ParseMembers([]string{"etcd-0=https://10.0.0.1:2380", "etcd-1=http://host:2380"})
	if err != nil || len(got) != 2 || got[1] != (Member{"etcd-1", "http://host:2380"}) {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range [][]string{
		nil, {""}, {"etcd-0"}, {"etcd-0="}, {"=http://a:1"}, {"a/b=http://a:1"}, {"..=http://a:1"}, {"a=a:2380"},
		{"a=http://a"}, {"a=http://a:1/x"},
		{"a=http://a:1", "a=http://b:1"}, {"a=http://a:1", "b=http://a:1"},
	} {
		if got, err := ParseMembers(bad); err == nil {
			t.Errorf("%q: took %v", bad, got)
		}
	}
}
