package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"hooklock/cmd/hooklock/cli"
)

// peopleHandler writes lines for a terminal: the time of day, the level, the event, and its fields
// in slog's text format.
type peopleHandler struct {
	to     io.Writer
	screen cli.Screen
	fields slog.Handler // writes to text
	shared *peopleText
}

// peopleText is the output that derived handlers share.
type peopleText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func newPeopleHandler(to io.Writer, screen cli.Screen, level slog.Level) *peopleHandler {
	shared := &peopleText{}
	return &peopleHandler{to: to, screen: screen, shared: shared,
		fields: slog.NewTextHandler(&shared.text, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutHead})}
}

// withoutHead removes time, level and message.
func withoutHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// Enabled implements slog.Handler.
func (h *peopleHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.fields.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *peopleHandler) Handle(ctx context.Context, r slog.Record) error {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	h.shared.text.Reset()
	if err := h.fields.Handle(ctx, r); err != nil {
		return err
	}
	hue := cli.Plainly
	switch {
	case r.Level >= slog.LevelError:
		hue = cli.Bad
	case r.Level >= slog.LevelWarn:
		hue = cli.Warning
	}
	head := r.Time.Format(time.TimeOnly) + " " + h.screen.Paint(hue, fmt.Sprintf("%-5s", r.Level)) + " " +
		h.screen.Paint(cli.Strong, cli.Plain(r.Message))
	line := append([]byte(head), ' ')
	_, err := h.to.Write(append(line, h.shared.text.Bytes()...)) // one line, in one write
	return err
}

// WithAttrs implements slog.Handler.
func (h *peopleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.fields = h.fields.WithAttrs(attrs)
	return &with
}

// WithGroup implements slog.Handler.
func (h *peopleHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.fields = h.fields.WithGroup(name)
	return &with
}
