package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long the folder must be quiet before the file is read, so that a file in the
	// middle of being written is not taken for a bad one; maxSettle is when it is read all the
	// same.
	settle    = 200 * time.Millisecond
	maxSettle = 2 * time.Second
	// poll finds changes without an event: a folder that was replaced, a file system without
	// events, a link into another folder.
	poll = 10 * time.Second
)

// Watcher reports when the content of a file changes, however it is replaced: written, renamed
// over, deleted and created again, or by the swap of the ..data link of a Kubernetes ConfigMap. For
// that it watches the folder, and compares content.
type Watcher struct {
	path    string
	changed func(text []byte, err error)
	settle  time.Duration
	poll    time.Duration

	mu     sync.Mutex // guards the fields below, over Start and Stop
	cancel context.CancelFunc
	done   chan struct{}

	heard chan struct{} // signals that Read was called

	seen   sync.Mutex // guards the fields below
	last   [sha256.Size]byte
	broken bool // the last read failed, and changed was called
}

// NewWatcher makes a watcher of the file at path, whose content is now known to be loaded
// (Loaded.File). It calls changed with each new content, or with the error of a read; never twice
// at once, and not after Stop has returned. changed must not call Stop.
func NewWatcher(path string, loaded []byte, changed func(text []byte, err error)) *Watcher {
	return &Watcher{path: path, changed: changed, settle: settle, poll: poll, heard: make(chan struct{}, 1),
		last: sha256.Sum256(loaded)}
}

// Start begins to watch; a change since the content was loaded is reported soon. It returns when
// the folder is watched. An error means that the system gives no events; nothing is running then. A
// second call does nothing.
func (w *Watcher) Start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		return nil
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.path, err)
	}
	folder := filepath.Dir(w.path)
	if err := events.Add(folder); err != nil {
		events.Close()
		return fmt.Errorf("watch %s: %w", folder, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.done = cancel, make(chan struct{})
	go func() {
		defer events.Close() // waits for a folder that hangs
		defer close(w.done)
		w.run(ctx, events, folder)
	}()
	return nil
}

// Stop ends the watch and waits for it, and for a call of changed that is under way. It does
// nothing if the watch does not run.
func (w *Watcher) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil {
		return
	}
	w.cancel()
	<-w.done
	w.cancel = nil
}

func (w *Watcher) run(ctx context.Context, events *fsnotify.Watcher, folder string) {
	ticker := time.NewTicker(w.poll)
	defer ticker.Stop()
	first := time.Now()           // when the first event came
	quiet := time.After(w.settle) // nil while nothing happens
	stir := func() {
		if quiet == nil {
			first = time.Now()
		}
		quiet = time.After(min(w.settle, maxSettle-time.Since(first)))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-events.Events:
			stir()
		case <-events.Errors: //nolint:errcheck // which one it was does not matter
			stir() // events were lost, so anything may have happened
		case <-quiet:
			quiet = nil
			if !w.lookAtFile(ctx, func() { _ = events.Add(folder) }) {
				stir()
			}
		case <-ticker.C:
			if quiet == nil {
				stir()
			}
		}
	}
}

// Read notes content that was read elsewhere meanwhile; nil: the file could not be read. From now
// on other content is reported, also the content that was reported last. changed may call it.
func (w *Watcher) Read(text []byte) {
	w.seen.Lock()
	defer w.seen.Unlock()
	w.last, w.broken = sha256.Sum256(text), text == nil
	if text != nil {
		select {
		case w.heard <- struct{}{}:
		default: // the signal is set already
		}
	}
}

// lookAtFile reads the file and reports it if it has changed. Then it watches the folder, which may
// be a new one of the same name. To watch it again changes nothing, and a folder that is gone shows
// as a file that cannot be read.
//
// Nothing ends a read that hangs, with the disk or the network of the file: it is abandoned when
// the watch ends, and when Read shows that the file can be read. Its content may have changed by
// now, so false says: look again.
func (w *Watcher) lookAtFile(ctx context.Context, watch func()) bool {
	select {
	case <-w.heard: // before this look
	default:
	}
	var text []byte
	var err error
	read := make(chan struct{})
	go func() {
		text, err = os.ReadFile(w.path)
		close(read)
		watch()
	}()
	select {
	case <-read:
	case <-w.heard:
		return false
	case <-ctx.Done():
		return true
	}
	if !w.isNews(text, err) {
		return true
	}
	if err != nil {
		text, err = nil, fmt.Errorf("read configuration: %w", err)
	}
	w.changed(text, err)
	return true
}

// isNews reports whether the content or error is new, and notes it.
func (w *Watcher) isNews(text []byte, err error) bool {
	w.seen.Lock()
	defer w.seen.Unlock()
	sum, was := sha256.Sum256(text), w.broken
	w.broken = err != nil
	if err != nil {
		return !was
	}
	same := sum == w.last
	w.last = sum
	return was || !same
}
