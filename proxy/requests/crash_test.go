package requests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hooklock/idem"
)

// childFolder is the variable by which a test starts this program again, as a process that dies
// while it keeps a request.
const childFolder = "HOOKLOCK_TEST_PARKED_FOLDER"

// stuck is a disk on which a file is never renamed.
type stuck struct{ disk }

func (s stuck) Rename(string, string) error {
	fmt.Println("written")
	_, err := io.Copy(io.Discard, os.Stdin) // ends with the test, if that does not kill it
	return errors.Join(errors.New("not killed"), err)
}

// child keeps a request, and a second one until it is killed.
func child(folder string) {
	d, err := OpenDir(folder)
	if err == nil {
		err = d.Put(context.Background(), execution(1), []byte("whole"))
	}
	if err == nil {
		d.disk = stuck{d.disk}
		err = d.Put(context.Background(), execution(2), []byte("unfinished"))
	}
	fmt.Println(err)
	os.Exit(1)
}

func TestAProcessThatIsKilledBeforeTheRenameLeavesAnOrphanAlone(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "requests")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+folder)
	_, errIn := cmd.StdinPipe() // open until the child has ended
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, errIn); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	killed := cmd.Process.Kill()
	_ = cmd.Wait() // the state says how it ended
	if err != nil || killed != nil || cmd.ProcessState.String() != "signal: killed" || line != "written\n" {
		t.Fatalf("the child said %q, %v, %v, %v", line, err, killed, cmd.ProcessState)
	}

	d := openDir(t, folder)
	if b, err := d.Get(t.Context(), execution(1)); err != nil || string(b) != "whole" {
		t.Errorf("the first: %q, %v", b, err)
	}
	if _, err := d.Get(t.Context(), execution(2)); !errors.Is(err, ErrNotKept) {
		t.Errorf("the second: %v", err)
	}
	if got := list(t, d); !slices.Equal(got, []idem.ExecutionID{execution(1), execution(2)}) {
		t.Errorf("listed %v", got)
	}
	now := time.Unix(0, 0)
	s := NewSweeper(d, func(context.Context, []idem.ExecutionID) ([]idem.ExecutionID, error) {
		return []idem.ExecutionID{execution(2)}, nil
	}, func() time.Time { return now })
	pass(t, s, 0)
	now = now.Add(orphanAfter)
	pass(t, s, 1)
	if _, err := os.Lstat(filepath.Join(folder, string(execution(2))+unfinished)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unfinished file: %v", err)
	}
	if _, err := d.Get(t.Context(), execution(1)); err != nil {
		t.Errorf("the first: %v", err)
	}
}
