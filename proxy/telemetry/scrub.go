package telemetry

import (
	"context"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// scrubber removes from an error of OpenTelemetry what may be a secret: the headers that are sent
// with OTLP, and of URLs all but their host. The zero value knows no headers.
type scrubber struct{ secrets *strings.Replacer }

func newScrubber(env func(string) string) scrubber {
	secrets := secretsOf(env)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // a part of one after the whole
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, "***")
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

// aURL also matches URLs that cannot be parsed: in quotes, the whole text counts as one.
var aURL = regexp.MustCompile(`"[^"]*://[^"]*"|[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// scrubText returns s without secrets.
func (c scrubber) scrubText(s string) string {
	if c.secrets != nil {
		s = c.secrets.Replace(s)
	}
	return aURL.ReplaceAllStringFunc(s, func(found string) string {
		bare := strings.Trim(found, `"`)
		if u, err := url.Parse(strings.TrimRight(bare, ":;,.)")); err == nil && u.Host != "" {
			return strings.Replace(found, bare, u.Scheme+"://"+u.Host, 1)
		}
		return "(a URL)"
	})
}

// scrubError returns err with its text scrubbed, or nil.
func (c scrubber) scrubError(err error) error {
	if err == nil {
		return nil
	}
	return scrubbed{c.scrubText(err.Error()), err}
}

type scrubbed struct {
	text string
	err  error
}

func (e scrubbed) Error() string { return e.text }

// Unwrap returns the error with its whole text.
func (e scrubbed) Unwrap() error { return e.err }

// sdkLog is the log of OpenTelemetry's own library. Its lines come with values of variables, with
// errors that quote them, and at level debug with whole batches: only constant messages and numbers
// are kept.
type sdkLog struct{ log *slog.Logger }

func (h sdkLog) Enabled(ctx context.Context, level slog.Level) bool { return h.log.Enabled(ctx, level) }

func (h sdkLog) Handle(ctx context.Context, r slog.Record) error {
	attrs := []slog.Attr{slog.String("problem", r.Message)}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Value.Kind() {
		case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindBool, slog.KindDuration:
			attrs = append(attrs, a)
		}
		return true
	})
	h.log.LogAttrs(ctx, r.Level, "telemetry.sdk", attrs...)
	return nil
}

func (h sdkLog) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h sdkLog) WithGroup(string) slog.Handler { return h }
