package embedded

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger passes on what etcd says of errors, and nothing else: it is talkative. Before etcd ends the process (a disk that fails,
// a damaged file) it says why at level fatal; the process then exits with status 1 as etcd wants it, because what it would
// do next is not to be trusted.
func newLogger(to *slog.Logger, flush func()) *zap.Logger {
	return zap.New(&core{LevelEnabler: zapcore.ErrorLevel, to: to, flush: flush}, zap.WithFatalHook(end{}))
}

// end is what comes behind a line at level fatal.
type end struct{}

// OnWrite implements zapcore.CheckWriteHook.
func (end) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	if harmless(e.Entry, fields) {
		runtime.Goexit()
	}
	os.Exit(1)
}

// harmless says that etcd looked for old files, every 30 s, to delete them, and that their folder is gone: the tidier has said that. All that has to end is
// the look, so that whoever reads the log has more than these seconds to make a backup.
func harmless(e zapcore.Entry, fields []zapcore.Field) bool {
	return e.Level == zapcore.FatalLevel && strings.HasPrefix(e.Message, "failed to purge ") && slices.ContainsFunc(fields, func(f zapcore.Field) bool {
		err, _ := f.Interface.(error)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// core is a zapcore.Core over slog.
type core struct {
	zapcore.LevelEnabler
	to     *slog.Logger
	flush  func()
	fields []zapcore.Field
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.LevelEnabler, c.to, c.flush, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
		return checked
	}
	return checked.AddCore(e, c)
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if harmless(e, fields) {
		return nil
	}
	values := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(values)
	}
	attrs := []any{"severity", e.Level.String()}
	for name, value := range values.Fields {
		attrs = append(attrs, name, value)
	}
	if e.Level == zapcore.FatalLevel { // nobody else will say it
		attrs = append(attrs, "advice", "where the disk is full, free space there; where files are damaged, "+whatToDo)
	}
	c.to.Log(context.Background(), level(e), "etcd: "+e.Message, attrs...)
	if e.Level > zapcore.ErrorLevel && c.flush != nil { // it may be the last thing that this process says
		c.flush()
	}
	return nil
}

// level demotes what etcd calls an error at the start of every new member: it tries again, and then it works.
func level(e zapcore.Entry) slog.Level {
	if e.Message == "failed to update storage version" {
		return slog.LevelDebug
	}
	return slog.LevelError
}

func (c *core) Sync() error { return nil }
