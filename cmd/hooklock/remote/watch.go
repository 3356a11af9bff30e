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

// shortestWatch bounds how often --watch asks: each look at a list may be many reads of etcd.
const shortestWatch = 500 * time.Millisecond

// watch shows what work shows, again and again, until ctx ends. What fails is shown in its place: a hooklock that starts anew comes back. A program
// that reads the API's answers gets them alone. What is a mistake now is one the next time.
func (d *Desk) watch(ctx context.Context, every time.Duration, work func(context.Context, *Desk) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for first := true; ; first = false {
		var page bytes.Buffer
		look := *d
		look.e = &cli.Environment{Env: d.e.Env, Stdout: &page, Stderr: &page}
		err := d.explain(ctx, work(ctx, &look))
		if ctx.Err() != nil {
			return nil // whoever watches has seen enough
		}
		var usage cli.UsageError
		var coded cli.CodedError
		switch {
		case errors.As(err, &usage), errors.As(err, &coded) && coded.Code == cli.ExitUsage:
			return err
		case err != nil && d.Raw() && !d.screen.Terminal():
			fmt.Fprintln(d.e.Stderr, err)
			page.Reset()
		case err != nil:
			page.Reset()
			fmt.Fprintln(&page, err)
		}
		if err := d.turn(page.String(), first); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// turn shows a page in the place of the one before. To what is no terminal, pages are written one after the other.
func (d *Desk) turn(page string, first bool) error {
	now := time.Now().Format(time.TimeOnly)
	if !d.screen.Terminal() {
		switch {
		case !d.Raw():
			page = now + "\n" + page
		case d.output == outputYAML && page != "":
			page = "---\n" + page // else all looks would be one document
		}
		_, err := fmt.Fprint(d.e.Stdout, page)
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
	_, err := fmt.Fprint(d.e.Stdout, text.String())
	return err
}
