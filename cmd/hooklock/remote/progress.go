package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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

// shortestWatch is the least interval of --watch: a list may take many reads of etcd.
const shortestWatch = 500 * time.Millisecond

// watchOutput shows the output of work repeatedly, until ctx ends. A failure is shown in place of
// the output, because a restarted hooklock comes back. For a program, failures go to standard
// error. A mistake of usage ends the watch.
func (d *Desk) watchOutput(ctx context.Context, every time.Duration, work func(context.Context, *Desk) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for first := true; ; first = false {
		var page bytes.Buffer
		look := *d
		look.environment = &cli.Environment{Env: d.environment.Env, Stdout: &page, Stderr: &page}
		err := d.explainError(ctx, work(ctx, &look))
		if ctx.Err() != nil {
			return nil // Ctrl-C is no failure
		}
		var coded cli.CodedError
		switch {
		case errors.As(err, &coded) && coded.Code == cli.ExitUsage:
			return err
		case err != nil && d.isRaw() && !d.screen.Terminal():
			fmt.Fprintln(d.environment.Stderr, err)
			page.Reset()
		case err != nil:
			page.Reset()
			fmt.Fprintln(&page, err)
		}
		if err := d.turnPage(page.String(), first); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// turnPage replaces the page on a terminal. Otherwise it appends the page.
func (d *Desk) turnPage(page string, first bool) error {
	now := time.Now().Format(time.TimeOnly)
	if !d.screen.Terminal() {
		switch {
		case !d.isRaw():
			page = now + "\n" + page
		case d.output == outputYAML && page != "":
			page = "---\n" + page // a document of its own
		}
		_, err := fmt.Fprint(d.environment.Stdout, page)
		return err
	}
	var text strings.Builder
	if first {
		text.WriteString("\x1b[2J")
	}
	text.WriteString("\x1b[H")
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	if room := d.screen.Height - 2; len(lines) > room && room > 0 {
		more := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("… %d more lines", more))
	}
	for _, line := range append([]string{d.url + "  " + now + "  Ctrl-C ends"}, lines...) {
		text.WriteString(line + "\x1b[K\n")
	}
	text.WriteString("\x1b[J")
	_, err := fmt.Fprint(d.environment.Stdout, text.String())
	return err
}
