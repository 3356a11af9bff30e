package remote

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"hooklock/cmd/hooklock/cli"
)

// progressAfter is how long something takes before a line says so, and how often that is renewed.
const progressAfter = time.Second

// progress says on a terminal what takes long, in a line that goes away again. Where standard error is none it says nothing.
type progress struct {
	to     io.Writer
	screen cli.Screen

	mu    sync.Mutex
	shown bool
	note  string // how far it has come
}

func newProgress(e *cli.Environment) *progress {
	return &progress{to: e.Stderr, screen: e.ScreenOf(e.Stderr)}
}

// during runs work, and says what it is as soon as it takes long.
func (p *progress) during(ctx context.Context, what string, work func() error) error {
	if !p.screen.Terminal() {
		return work()
	}
	over, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { p.tell(over, what) })
	err := work()
	cancel()
	telling.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	return err
}

func (p *progress) tell(ctx context.Context, what string) {
	began := time.Now()
	ticker := time.NewTicker(progressAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.show(what + ": " + cli.Span(time.Since(began).Truncate(time.Second)))
		case <-ctx.Done():
			return
		}
	}
}

func (p *progress) show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.note != "" {
		text += ", " + p.note
	}
	_, _ = fmt.Fprint(p.to, "\r\x1b[K"+cli.Clip(text, p.screen.Width-1)) // nobody may look any more
	p.shown = true
}

// far says how far the work has come.
func (p *progress) far(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note = fmt.Sprintf(format, args...)
}

// clear takes the line away. The caller holds mu.
func (p *progress) clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
		p.shown = false
	}
}

// beside is w for what is written while the line may be shown.
func (p *progress) beside(w io.Writer) io.Writer {
	if !p.screen.Terminal() {
		return w
	}
	return besideProgress{w, p}
}

type besideProgress struct {
	io.Writer
	p *progress
}

// Write implements io.Writer.
func (b besideProgress) Write(text []byte) (int, error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.p.clear()
	return b.Writer.Write(text)
}
