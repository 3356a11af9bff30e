package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

const (
	// settle is how long an item must have been away before it is told to be over: what comes and
	// goes is one thing that lasts.
	settle = 2 * time.Minute
	// mostTold bounds the items that are kept as told, the worst first: with their texts they are
	// about 100 KB in the ledger. Further ones are not told.
	mostTold = 300
	// mostLines and mostText bound a message: Google Chat takes 4096 bytes.
	mostLines, mostText = 15, 3500
	// mostLine bounds a line, and what is kept of an item, in characters.
	mostLine, mostKept = 600, 200
)

// notice is an item that people know of.
type notice struct {
	Item  string    `json:"item"` // a hash of its ID
	Kind  string    `json:"kind"`
	Route string    `json:"route,omitempty"`
	Text  string    `json:"text"` // as it was told first
	Since time.Time `json:"since"`
	At    time.Time `json:"at"` // told last
}

// state is what was told, as it is kept.
type state struct {
	Writes int64    `json:"n"` // it grows with each write
	Told   []notice `json:"told,omitempty"`
}

// plan is what to send next, and what will have been told then. Without lines there is nothing to
// send.
type plan struct {
	lines                 []string
	begun, lasting, ended int
	next                  []notice
}

// planner decides what is to be told.
type planner struct {
	now    time.Time
	every  time.Duration // 0 = what lasts is not told again
	routes []string      // nil = all
	// gone is since when items that were told are not in the list, by their hash.
	gone map[string]time.Time
}

// makePlan compares the list with what was told. Of a list with something that is not known,
// nothing is over.
func (p *planner) makePlan(list *client.Attention, before []notice) (out plan) {
	listed := map[string]bool{}
	for i := range list.Items {
		item := &list.Items[i]
		hash := hashOf(item.ID)
		if !p.isWanted(item.Route) || listed[hash] {
			continue
		}
		listed[hash] = true
		delete(p.gone, hash)
		known := slices.IndexFunc(before, func(t notice) bool { return t.Item == hash })
		switch {
		case known < 0 && len(out.next) >= mostTold:
		case known < 0:
			since := cmp.Or(item.SinceAt.Time, p.now)
			out.next = append(out.next, notice{Item: hash, Kind: item.Kind, Route: item.Route,
				Text: cleanText(item.Text, item.Kind, mostKept), Since: since.UTC(), At: p.now})
			out.begun++
			out.lines = append(out.lines, itemLine(headOfNew(item), item))
		case p.every > 0 && p.now.Sub(before[known].At) >= p.every:
			again := before[known]
			again.At = p.now
			out.next = append(out.next, again)
			out.lasting++
			out.lines = append(out.lines, itemLine("Still: ", item))
		default:
			out.next = append(out.next, before[known])
		}
	}
	for i := range before {
		if t := &before[i]; !listed[t.Item] && p.isWanted(t.Route) {
			p.endNotice(t, len(list.NotKnown) > 0, &out)
		}
	}
	return out
}

// endNotice looks at something that was told and is not listed any more.
func (p *planner) endNotice(t *notice, unsure bool, out *plan) {
	since, is := p.gone[t.Item]
	if !is && !unsure {
		since = p.now
		p.gone[t.Item] = since
	}
	if unsure || p.now.Sub(since) < settle {
		out.next = append(out.next, *t)
		return
	}
	delete(p.gone, t.Item)
	out.ended++
	text := "Over: "
	if isMarkable(t.Kind) {
		text = "Over, or looked at: "
	}
	what, after := t.Text, "less than a minute"
	if t.Kind == client.AttentionRouteFails { // its numbers are those of when it was told first
		what = t.Route + " fails no more"
	}
	if lasted := since.Sub(t.Since).Truncate(time.Minute); lasted > 0 {
		after = story.Span(lasted)
	}
	out.lines = append(out.lines, text+what+", after "+after)
}

// isWanted reports whether what is of a route is told. What is of none always is.
func (p *planner) isWanted(route string) bool {
	return route == "" || len(p.routes) == 0 || slices.Contains(p.routes, route)
}

func headOfNew(item *client.AttentionItem) string {
	if item.Bad {
		return "New, urgent: "
	}
	return "New: "
}

// itemLine returns the line of an item. What its service said is left out: it may be personal.
func itemLine(head string, item *client.AttentionItem) string {
	text := item.Text
	if !item.SinceAt.IsZero() {
		text += ", since " + item.SinceAt.UTC().Format("2006-01-02 15:04 UTC")
	}
	for _, more := range []string{item.Cause, item.Next} {
		if more != "" {
			text += ". " + strings.ToUpper(more[:1]) + more[1:]
		}
	}
	if item.Command != "" {
		text += ". " + item.Command
	}
	return head + cleanText(text, item.Kind, mostLine)
}

// messageText returns the text of a message.
func (p *plan) messageText(replica string) string {
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{{p.begun, "new"}, {p.lasting, "lasting"}, {p.ended, "over"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	text := fmt.Sprintf("Hooklock at %s: %s", cleanText(replica, "", mostKept), strings.Join(counts, ", "))
	for i, line := range p.lines {
		rest := len(p.lines) - i
		if i == mostLines || len(text)+len(line) > mostText {
			return text + fmt.Sprintf("\n• and %d more: hooklock status", rest)
		}
		text += "\n• " + line
	}
	return text
}

// cleanText returns a text on one line that a receiver takes for nothing but text: names of
// workflows are made of what strangers send, and "<!channel>", "@all" or an address would call
// people, or lead them away.
func cleanText(text, kind string, most int) string {
	text = strings.NewReplacer("<", "‹", ">", "›", "@", "＠", "`", "'", "](", "] (").Replace(oneLine(text, most))
	if kind != client.AttentionEtcdDown && kind != client.AttentionEtcdFull {
		text = strings.ReplaceAll(text, "://", "[:]//")
	}
	return text
}

// isMarkable reports whether a person can mark items of a kind as looked at, so that they are not
// listed.
func isMarkable(kind string) bool {
	return slices.Contains(idem.ConcernKind("").Choices(), kind)
}

func hashOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}
