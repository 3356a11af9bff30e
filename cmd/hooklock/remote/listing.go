package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem/naming"
)

// mostOnAPage is the size of a page.
const mostOnAPage = 200

// listing is a list of the API that is printed page by page.
type listing[T any] struct {
	name   string        // of the list in the API's answer
	none   string        // said if it is empty
	why    func() string // behind that; nil: nothing
	limit  int           // 0 = all
	cursor string
	page   func(limit int, cursor string) (items []T, next string, err error)
	read   int // items so far
	raw    func(*T) []byte
	row    func(*T) []string
	head   []string
	// csvHead and csvRow are the columns for spreadsheets; nil: head and row.
	csvHead []string
	csvRow  func(*T) []string
	drop    []string // see cli.Table
	cut     map[string]int
	middle  []string
}

// pageOf returns the page of a listing: get asks for it with the limit and the cursor of its query,
// and parts takes it apart.
func pageOf[P, T any](limit *int, cursor *string, get func() (*P, error),
	parts func(*P) ([]T, string)) func(int, string) ([]T, string, error) {
	return func(most int, at string) (items []T, next string, err error) {
		*limit, *cursor = most, at
		page, err := get()
		if err == nil {
			items, next = parts(page)
		}
		return items, next, err
	}
}

// listFlags adds the flags of a list, which are those of its query.
func listFlags(cmd *cobra.Command, limit *int, cursor *string) {
	cmd.Flags().IntVar(limit, "limit", 0, "print at most this many (default 0: all)")
	cmd.Flags().StringVar(cursor, "cursor", "", "continue a list that --limit cut: give its nextCursor")
	NoFiles(cmd, "limit", "cursor")
}

func (l *listing[T]) print(d *Desk) error {
	if l.limit < 0 {
		return cli.Misuse(errors.New("--limit: give a number from 0 on"))
	}
	switch d.output {
	case outputJSON:
		return l.printJSON(d.environment.Stdout)
	case outputYAML:
		return l.printYAML(d.environment.Stdout)
	case outputCSV:
		next, err := l.printCSV(d.environment.Stdout)
		if err == nil && next != "" {
			l.sayMore(d, next)
		}
		return err
	}
	t := d.newTable(l.head...)
	t.Drop, t.Cut, t.Middle, t.Hue = l.drop, l.cut, l.middle, hueOf
	next, err := l.eachItem(func(item *T) error { t.Add(l.row(item)...); return nil }, func() error {
		d.progress.setNote("%d read", l.read)
		return t.Flush()
	})
	switch {
	case err != nil:
		return err
	case next != "":
		l.sayMore(d, next)
	case !t.Begun:
		if l.why != nil {
			l.none += l.why()
		}
		fmt.Fprintln(d.environment.Stderr, l.none)
	}
	return nil
}

// sayMore says that the list goes on.
func (l *listing[T]) sayMore(d *Desk, next string) {
	fmt.Fprintf(d.environment.Stderr, "%d shown; all: --limit 0; next: --cursor %s\n", l.read, cli.Plain(next))
}

// eachItem calls item for each item and end after each page. It returns the cursor of the rest, or
// "" if there is none.
func (l *listing[T]) eachItem(item func(*T) error, end func() error) (string, error) {
	cursor := l.cursor
	for {
		want := mostOnAPage
		if l.limit > 0 {
			want = min(want, l.limit-l.read)
		}
		items, next, err := l.page(want, cursor)
		if err != nil {
			return "", err
		}
		for i := range items {
			if err := item(&items[i]); err != nil {
				return "", err
			}
		}
		l.read += len(items)
		if err := end(); err != nil {
			return "", err
		}
		if next == "" || l.limit > 0 && l.read >= l.limit {
			return next, nil
		}
		if next == cursor {
			return "", errors.New("the server gave the same cursor twice")
		}
		cursor = next
	}
}

// printJSON prints one document in the API's shape, an item a line. After an error the document is
// not closed, so that no reader takes a part for the whole.
func (l *listing[T]) printJSON(out io.Writer) error {
	between := fmt.Sprintf("{%q:[\n", l.name)
	next, err := l.eachItem(func(item *T) error {
		line, err := cli.JSONLine(l.raw(item))
		if err == nil {
			_, err = fmt.Fprintf(out, "%s%s", between, line)
			between = ",\n"
		}
		return err
	}, func() error { return nil })
	if err != nil {
		return err
	}
	if between != ",\n" {
		if _, err := io.WriteString(out, between[:len(between)-1]); err != nil {
			return err
		}
	}
	cursor, err := json.Marshal(next)
	if err == nil {
		_, err = fmt.Fprintf(out, "],\"nextCursor\":%s}\n", cursor)
	}
	return err
}

// printCSV prints a line for each item, below one with the names of the columns. It returns the
// cursor of the rest.
func (l *listing[T]) printCSV(out io.Writer) (string, error) {
	head, row := l.csvHead, l.csvRow
	if head == nil {
		row = l.row
		for _, name := range l.head {
			head = append(head, strings.ToLower(strings.ReplaceAll(name, " ", "_")))
		}
	}
	if err := story.WriteCSV(out, head); err != nil {
		return "", err
	}
	return l.eachItem(func(item *T) error { return story.WriteCSV(out, row(item)) }, func() error { return nil })
}

// printYAML prints one document in the API's shape.
func (l *listing[T]) printYAML(out io.Writer) error {
	between := l.name + ":\n"
	next, err := l.eachItem(func(item *T) error {
		text, err := cli.YAML(append(append([]byte("["), l.raw(item)...), ']'))
		if err == nil {
			_, err = fmt.Fprintf(out, "%s%s", between, text)
			between = ""
		}
		return err
	}, func() error { return nil })
	if err != nil {
		return err
	}
	if between != "" {
		if _, err := fmt.Fprintf(out, "%s: []\n", l.name); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "nextCursor: %q\n", next)
	return err
}

// hueOf returns the hue of a cell: red is what an operator should act on.
func hueOf(head, cell string) cli.Hue {
	switch head {
	case "STATUS", "STATE", "OUTCOME", "DECISION":
		return hues[cell]
	case "WHY":
		return cli.Warning
	}
	return cli.Plainly
}

// hues maps states, statuses and outcomes to their hues.
var hues = map[string]cli.Hue{
	string(client.Success): cli.Good, string(client.Failed): cli.Bad, string(client.Aborted): cli.Warning,
	string(client.Running): cli.Busy, string(client.Pending): cli.Busy, string(client.CancelRequested): cli.Warning,
	string(client.Unknown): cli.Bad,
	stateBlocked:           cli.Bad, story.StatusBlocked: cli.Bad,
	stateRunning: cli.Busy, stateCooling: cli.Warning, stateRunning + stateStale: cli.Bad,
	stateHeld + stateStale: cli.Bad, stateCooling + stateStale: cli.Bad,
}

// whyNone returns what is wrong with a filter by a route or a label that matches nothing, behind a
// semicolon; "" = nothing is known to be wrong. Either may be empty.
func (d *Desk) whyNone(ctx context.Context, route, label string) string {
	if label != "" && !strings.Contains(label, "=") {
		return "; a --label without a name is looked for among the values: give NAME=VALUE"
	}
	if route == "" {
		return ""
	}
	names, err := d.routeNames(ctx)
	if err != nil || slices.Contains(names, route) {
		return ""
	}
	said := "; no route of this replica has the name " + cli.Plain(route)
	if near := naming.Nearest(route, names); near != "" {
		return said + ", did you mean " + cli.Plain(near) + "?"
	}
	return said + "; hooklock status lists them"
}
