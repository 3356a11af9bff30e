package remote

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// NewSignatures is the command signatures.
func NewSignatures(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputCSV}}
	var q client.BadSignatureQuery
	cmd := &cobra.Command{
		Use:   "signatures",
		Short: "list deliveries whose signature was not valid, the newest first",
		Long: `List deliveries whose signature was not valid, of all replicas, the newest first: when and from where each came, what part was wrong, and
the event ID that it says, which nothing proves. They are kept for 30 days, the newest 1,000 of a route. Of a flood few are listed: MORE is how
many of the route came so soon after that they are not.`,
		Example: `  hooklock signatures --route stripe --since 24h
  hooklock signatures --event evt_1QRefused409 -o json`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			d.rewriteTimes(&q.Since, &q.Until)
			return badSignatures(ctx, d, q).print(d)
		}),
	}
	r.Flags(cmd)
	textFlag(cmd, &q.Route, "route", "only of this route")
	textFlag(cmd, &q.EventID, "event", "only those that say this event ID")
	textFlag(cmd, &q.Since, "since", "only since "+momentsHelp)
	textFlag(cmd, &q.Until, "until", "only until then")
	listFlags(cmd, &q.Limit, &q.Cursor)
	r.watchFlag(cmd)
	return cmd
}

// badSignatures returns the list of what q selects.
func badSignatures(ctx context.Context, d *Desk, q client.BadSignatureQuery) *listing[client.BadSignature] {
	now := time.Now()
	return &listing[client.BadSignature]{
		name: "badSignatures", none: "no bad signatures", limit: q.Limit, cursor: q.Cursor,
		why:  func() string { return d.whyNone(ctx, q.Route, "") },
		head: []string{"AGE", "ROUTE", "FROM", "REASON", "PART", "EVENT", "SENDER GOT", "MORE", "TRACE", "DETAIL"},
		drop: []string{"TRACE", "SENDER GOT"}, cut: map[string]int{"ROUTE": 8, "EVENT": 12, "PART": 12, "DETAIL": 16},
		csvHead: []string{"time", "route", "from", "reason", "part", "event", "sender_got", "more", "trace", "detail"},
		csvRow: func(b *client.BadSignature) []string {
			return append([]string{story.CSVTime(b.At)}, badSignatureRow(b, now)[1:]...)
		},
		row: func(b *client.BadSignature) []string { return badSignatureRow(b, now) },
		raw: (*client.BadSignature).RawJSON,
		page: pageOf(&q.Limit, &q.Cursor,
			func() (*client.BadSignaturePage, error) { return d.BadSignaturePage(ctx, q) },
			func(p *client.BadSignaturePage) ([]client.BadSignature, string) { return p.BadSignatures, p.NextCursor }),
	}
}

func badSignatureRow(b *client.BadSignature, now time.Time) []string {
	more := ""
	if b.More > 0 {
		more = strconv.FormatInt(b.More, 10)
	}
	return []string{cli.Span(now.Sub(b.At.Time)), b.Route, b.From, b.Reason, b.Part, b.EventID,
		strconv.Itoa(b.Status), more, b.TraceID, b.Detail}
}

// addBadSignatures prints, below an event, the deliveries that say its ID and had no valid
// signature, as far as the token may see them.
func (d *Desk) addBadSignatures(ctx context.Context, q client.BadSignatureQuery) error {
	page, err := d.BadSignaturePage(ctx, q)
	if q.EventID == "" || err != nil || len(page.BadSignatures) == 0 {
		return nil //nolint:nilerr // the event is shown all the same
	}
	more := ""
	if page.NextCursor != "" {
		more = "at least "
	}
	fmt.Fprintf(d.environment.Stdout, "\n%s%s with this ID had no valid signature, and did not run:\n", more,
		story.Count(len(page.BadSignatures), "delivery", "deliveries"))
	return badSignatures(ctx, d, q).print(d)
}

// showBadSignatures lists the deliveries that say that event ID and had no valid signature. It
// returns otherwise if there are none, or if the token may not see them.
func (d *Desk) showBadSignatures(ctx context.Context, eventID string, otherwise error) error {
	q := client.BadSignatureQuery{EventID: eventID}
	if page, err := d.BadSignaturePage(ctx, q); err != nil || len(page.BadSignatures) == 0 {
		return otherwise
	}
	if d.output == outputTable || d.output == outputWide {
		d.printParagraph(fmt.Sprintf("Event %s never ran: what came with this ID had no valid signature.", eventID))
		d.printParagraph("What to do: if it is the sender's, correct the route's secret and let the sender send it " +
			"again. " +
			"Anyone can write an ID into a request.")
		fmt.Fprintln(d.environment.Stdout)
	}
	return badSignatures(ctx, d, q).print(d)
}
