package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/idem/naming"
	"hooklock/proxy/suggest"
)

func newObserve(e *cli.Environment) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "observe FILE...",
		Short: "find out of recorded deliveries what names an event, its workflow, and what the sender changes",
		Long: `Read recorded deliveries and print the routes to write, as YAML: for each path what names an event (event_id), what its workflow is, which
members change between attempts of one event (ignore), and below it what that is concluded from. What cannot be known is said, and left
out. Nothing is sent, and no value of a delivery is printed but the names of subscriptions (X-Hook-Id).

FILE is one of

  a folder, or files in it: each a whole request, as "hooklock request" prints it, or a body alone; the file's time counts as that
                            of the delivery, and no status is known
  a HAR file:               with times and statuses
  JSON lines:               as nginx writes with log_format escape=json: time_iso8601 or msec, request_method, request_uri, status, request_time,
                            request_body, content_type and http_x_event_id for each header; or time, method, target, status, body and headers

Statuses matter: a delivery that comes again after a failure is a retry, and one with the same bytes after a success may be another event.
GET, HEAD and OPTIONS without a body are left out.`,
		Example: `  hooklock observe recorded/
  hooklock observe hooks.har
  hooklock observe access.jsonl > routes.yaml && hooklock validate --config routes.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			all, left, err := readDeliveries(files, from)
			if err != nil {
				return cli.Misuse(err)
			}
			if left > 0 {
				fmt.Fprintf(e.Stderr, "hooklock observe: %d entries are no deliveries and were left out\n", left)
			}
			if len(all) == 0 {
				return errors.New("no delivery was found: give whole requests, a HAR file or JSON lines with bodies")
			}
			return printConclusions(e.Stdout, all)
		},
	}
	cmd.Flags().StringVar(&from, "path", "/", "the path of bodies that are alone in their file")
	return cmd
}

// printConclusions prints what is concluded from deliveries.
func printConclusions(out io.Writer, all []*suggest.Delivery) error {
	slices.SortStableFunc(all, func(a, b *suggest.Delivery) int { return a.At.Compare(b.At) })
	set := suggest.NewSet(0)
	for _, d := range all {
		set.Add(d)
	}
	var b bytes.Buffer
	b.WriteString("routes:\n")
	for _, s := range set.Suggest(time.Time{}) {
		b.WriteString(s.YAML())
		for _, sentence := range s.Sentences {
			fmt.Fprintf(&b, "    # %s\n", cli.Plain(sentence))
		}
	}
	if set.Missed() > 0 {
		fmt.Fprintf(&b, "# %d deliveries came to further paths, which were not looked at.\n", set.Missed())
	}
	_, err := out.Write(b.Bytes())
	return err
}

// deliveryOf makes a delivery to learn from; nil if the request is none.
func (r *recorded) deliveryOf(at time.Time, took time.Duration, status int, path string) *suggest.Delivery {
	m := &naming.Message{Method: []byte(cmp.Or(r.sample.Method, "POST")), Target: []byte(cmp.Or(r.sample.Target, path)),
		Body: r.sample.Body}
	if slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, string(m.Method)) && len(m.Body) == 0 {
		return nil
	}
	m.Path, m.Query, _ = bytes.Cut(m.Target, []byte{'?'})
	for _, h := range r.sample.Header {
		m.Fields = append(m.Fields, naming.Field{Name: []byte(h[0]), Value: []byte(h[1])})
	}
	if media := mediaOf(m.Body); r.sample.Target == "" && media != "" {
		m.Fields = append(m.Fields, naming.Field{Name: []byte("Content-Type"), Value: []byte(media)})
	}
	return &suggest.Delivery{At: at, Took: took, Status: status, Message: m}
}
