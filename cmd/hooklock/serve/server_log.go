package serve

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc/grpclog"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
	"hooklock/proxy/telemetry/logs"
)

// lastLines is how long a stop waits for the reader of the log.
const lastLines = 2 * time.Second

// ServerLog is the log of a server.
type ServerLog struct {
	*slog.Logger
	writer *logs.Writer
	format config.LogFormat
	// people is the terminal for lines in the format for people; nil: lines are in format.
	people *cli.Screen
}

// OpenLog makes standard error the log of a server. On a terminal its lines are for readers, unless
// the configuration names a format. From now on all output there goes through one writer that never
// blocks and that run closes at the end. A closed pipe is an error of that writer, not a signal.
func OpenLog(e *cli.Environment, loaded *config.Loaded) *ServerLog {
	c := &loaded.Config.Log
	signal.Ignore(syscall.SIGPIPE)
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // a checked configuration has no other level
	}
	l := &ServerLog{format: c.Format}
	if screen := e.ScreenOf(e.Stderr); screen.Terminal() && loaded.Origin("log.format").Kind == config.FromDefault {
		l.people = &screen
	}
	l.writer = logs.NewWriter(logs.Options{To: e.Stderr, Lost: l.Lost, Piece: pieceOf(e.Stderr)})
	l.Logger = l.loggerTo(l.writer, level)
	e.AtEnd, e.Stderr = l.closeWriter, l.writer
	log.SetOutput(l.writer) // for libraries
	return l
}

// pieceOf returns how much is written at once: to a file without a bound, because an append is not
// divided.
func pieceOf(to io.Writer) int {
	file, ok := to.(*os.File)
	if !ok {
		return 0
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return 64 << 10
}

// whereLibrariesLog writes to the standard library's log.
type whereLibrariesLog struct{}

// Write implements io.Writer.
func (whereLibrariesLog) Write(line []byte) (int, error) { return log.Writer().Write(line) }

// RedirectGRPC redirects the log of gRPC, which otherwise writes to standard error. Call it before
// gRPC is used.
func RedirectGRPC() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, whereLibrariesLog{}))
}

// loggerTo returns a logger in the configured format.
func (l *ServerLog) loggerTo(w io.Writer, level slog.Level) *slog.Logger {
	if l.people != nil {
		return slog.New(newPeopleHandler(w, *l.people, level))
	}
	if l.format == config.LogText {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// Lost returns the line that replaces lost lines.
func (l *ServerLog) Lost(lines int64) []byte {
	var text bytes.Buffer
	logger := l.loggerTo(&text, slog.LevelWarn) // whatever the configured level is
	logger.Warn("log.lost", "lines", lines)
	return text.Bytes()
}

// Reserve reserves room for the line of a change by the API.
func (l *ServerLog) Reserve() (line *slog.Logger, release func(), err error) {
	place, err := l.writer.Reserve()
	if err != nil {
		return nil, nil, err
	}
	return l.loggerTo(place, slog.LevelInfo), place.Release, nil
}

// flushLines waits until all lines are written, for a bounded time.
func (l *ServerLog) flushLines() {
	ctx, cancel := context.WithTimeout(context.Background(), lastLines)
	defer cancel()
	l.writer.Flush(ctx)
}

// closeWriter writes the remaining lines, for a bounded time.
func (l *ServerLog) closeWriter() {
	ctx, cancel := context.WithTimeout(context.Background(), lastLines)
	defer cancel()
	_ = l.writer.Close(ctx)
}
