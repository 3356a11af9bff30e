package requests

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"hooklock/idem"
)

// hanging is a disk that says of each call when it has come, and answers it when released is
// closed.
type hanging struct {
	disk
	came     chan struct{}
	released chan struct{}
}

func (h *hanging) hang() {
	h.came <- struct{}{}
	<-h.released
}

func (h *hanging) Create(name string) (file, error) {
	h.hang()
	return h.disk.Create(name)
}

func (h *hanging) Open(name string) (file, error) {
	h.hang()
	return h.disk.Open(name)
}

func (h *hanging) Remove(name string) error {
	h.hang()
	return h.disk.Remove(name)
}

func (h *hanging) Walk(each func(fs.DirEntry) bool) error {
	h.hang()
	return h.disk.Walk(each)
}

func (h *hanging) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	h.hang()
	return h.disk.OpenFile(name, flag, perm)
}

func (h *hanging) MkdirAll(name string, perm fs.FileMode) error {
	return h.disk.MkdirAll(name, perm)
}

func (h *hanging) RemoveAll(name string) error { return h.disk.RemoveAll(name) }

// onHanging opens a Dir with one request in it, whose disk hangs from then on.
func onHanging(t *testing.T) (*Dir, *hanging) {
	t.Helper()
	d := openDir(t, t.TempDir()+"/requests")
	if err := d.Put(t.Context(), execution(1), []byte("here")); err != nil {
		t.Fatal(err)
	}
	h := &hanging{d.disk, make(chan struct{}, 2*maxAsking), make(chan struct{})}
	d.disk = h
	return d, h
}

func TestAWaitForADiskThatHangsEndsWithItsContext(t *testing.T) {
	d, h := onHanging(t)
	over := errors.New("the sender waits no longer")
	for name, ask := range map[string]func(ctx context.Context) error{
		"put":    func(ctx context.Context) error { return d.Put(ctx, execution(2), []byte("late")) },
		"get":    func(ctx context.Context) error { _, err := d.Get(ctx, execution(1)); return err },
		"delete": func(ctx context.Context) error { return d.Delete(ctx, execution(3)) },
		"list": func(ctx context.Context) (err error) {
			for _, err = range d.List(ctx) { //nolint:revive // the last one
			}
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-h.came
			cancel(over)
		}()
		if err := ask(ctx); !errors.Is(err, over) {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(h.released)
	for range maxAsking {
		d.asking <- struct{}{} // each call has been answered
	}
	for range maxAsking {
		<-d.asking
	}
	for len(h.came) > 0 {
		<-h.came
	}
	if got := list(t, d); !slices.Equal(got, []idem.ExecutionID{execution(1), execution(2)}) {
		t.Errorf("there is %v; what was written late is for the sweeper", got)
	}
}

// The race detector sees what a call of the disk shares with a caller that has gone on.
func TestACallOfTheDiskThatOutlivesItsCallerSharesNothingWithIt(t *testing.T) {
	of := shelfOf(week, noon)
	for _, ask := range []func(ctx context.Context, area *dirArea) error{
		func(ctx context.Context, area *dirArea) error {
			_, err := area.listNames(ctx, of.folderPath())
			return err
		},
		func(ctx context.Context, area *dirArea) error {
			_, err := area.readFrame(ctx, of, execution(1))
			return err
		},
		func(ctx context.Context, area *dirArea) error { return area.eraseFrame(ctx, of, execution(1)) },
	} {
		for range 20 { // the answer may be there before the end is seen
			d, h := onHanging(t)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-h.came
				cancel()
				close(h.released)
			}()
			if err := ask(ctx, newDirArea(d, "p")); err != nil && !errors.Is(err, context.Canceled) &&
				!errors.Is(err, ErrNotKept) {
				t.Error(err)
			}
		}
	}
}

func TestADiskIsNotAskedForACallerThatHasGone(t *testing.T) {
	d, h := onHanging(t)
	close(h.released)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range maxAsking / 2 {
		if err := d.Delete(ctx, execution(1)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if got := list(t, d); !slices.Equal(got, []idem.ExecutionID{execution(1)}) {
		t.Errorf("there is %v", got)
	}
}

func TestADiskThatHangsKeepsFewThreads(t *testing.T) {
	d, h := onHanging(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 3 * maxAsking {
		go func() { ended <- d.Delete(ctx, execution(1)) }()
	}
	for range maxAsking {
		<-h.came
	}
	cancel()
	for range 3 * maxAsking {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if len(h.came) > 0 {
		t.Errorf("%d more have asked", len(h.came))
	}
	if err := d.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	close(h.released)
}
