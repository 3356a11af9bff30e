package remote

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"hooklock/cmd/hooklock/cli"
)

// progressAfter is the time before the first line, and between lines.
const progressAfter = time.Second

// progress shows on a terminal what takes long, in a line that is removed at the end. It shows
// nothing if standard error is no terminal.
type progress struct {
	to     io.Writer
	screen cli.Screen

	mu    sync.Mutex
	shown bool
	note  string // set by far
	only  string // set by showOnly
}

func newProgress(e *cli.Environment) *progress {
	return &progress{to: e.Stderr, screen: e.ScreenOf(e.Stderr)}
}

// runShown runs work, and shows what as soon as it takes long.
func (p *progress) runShown(ctx context.Context, what string, work func() error) error {
	if !p.screen.Terminal() {
		return work()
	}
	over, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { p.tellUntilDone(over, what) })
	err := work()
	cancel()
	telling.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLine()
	return err
}

func (p *progress) tellUntilDone(ctx context.Context, what string) {
	began := time.Now()
	ticker := time.NewTicker(progressAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.showLine(what + ": " + cli.Span(time.Since(began).Truncate(time.Second)))
		case <-ctx.Done():
			return
		}
	}
}

func (p *progress) showLine(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.note != "" {
		text += ", " + p.note
	}
	if p.only != "" {
		text = p.only
	}
	_, _ = fmt.Fprint(p.to, "\r\x1b[K"+cli.Clip(text, p.screen.Width-1)) // it is only progress
	p.shown = true
}

// showOnly shows text at once, and instead of anything else until it is called with "".
func (p *progress) showOnly(text string) {
	p.mu.Lock()
	p.only = text
	if text == "" {
		p.clearLine()
	}
	p.mu.Unlock()
	if text != "" && p.screen.Terminal() {
		p.showLine(text)
	}
}

// setNote sets the note about the progress.
func (p *progress) setNote(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note = fmt.Sprintf(format, args...)
}

// clearLine removes the line. The caller holds mu.
func (p *progress) clearLine() {
	if p.shown {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
		p.shown = false
	}
}

// writerBeside returns a writer to w that removes the line first.
func (p *progress) writerBeside(w io.Writer) io.Writer {
	if !p.screen.Terminal() {
		return w
	}
	return besideProgress{w, p}
}

type besideProgress struct {
	io.Writer
	progress *progress
}

// Write implements io.Writer.
func (b besideProgress) Write(text []byte) (int, error) {
	b.progress.mu.Lock()
	defer b.progress.mu.Unlock()
	b.progress.clearLine()
	return b.Writer.Write(text)
}
