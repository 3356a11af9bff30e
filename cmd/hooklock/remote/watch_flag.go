package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hooklock/cmd/hooklock/cli"
)

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
