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

// newLogger passes on etcd's errors, and nothing else, because etcd logs much. Before etcd ends the
// process (a disk that fails, a damaged file) it logs why at level fatal; the process then exits
// with status 1 as etcd wants it, because its state is not to be trusted.
func newLogger(to *slog.Logger, flush func()) *zap.Logger {
	return zap.New(&core{LevelEnabler: zapcore.ErrorLevel, to: to, flush: flush}, zap.WithFatalHook(end{}))
}

// end runs after a line at level fatal.
type end struct{}

// OnWrite implements zapcore.CheckWriteHook.
func (end) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	if isHarmless(e.Entry, fields) {
		runtime.Goexit()
	}
	os.Exit(1)
}

// isHarmless reports whether etcd could not list old files, as it does every 30 s, because their
// folder is gone: the tidier has reported that. The process must go on, so that an operator who
// reads the log has more than these seconds to make a backup.
func isHarmless(e zapcore.Entry, fields []zapcore.Field) bool {
	return e.Level == zapcore.FatalLevel && strings.HasPrefix(e.Message, "failed to purge ") &&
		slices.ContainsFunc(fields, func(f zapcore.Field) bool {
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
	return &core{c.LevelEnabler, c.to, c.flush, append(slices.Clip(c.fields), fields...)}
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
		return checked
	}
	return checked.AddCore(e, c)
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if isHarmless(e, fields) {
		return nil
	}
	values := zapcore.NewMapObjectEncoder()
	for _, f := range append(slices.Clip(c.fields), fields...) {
		f.AddTo(values)
	}
	attrs := []any{"severity", e.Level.String()}
	for name, value := range values.Fields {
		attrs = append(attrs, name, value)
	}
	if e.Level == zapcore.FatalLevel { // no other line says it
		attrs = append(attrs, "advice", "where the disk is full, free space there; where files are damaged, "+whatToDo)
	}
	c.to.Log(context.Background(), logLevel(e), "etcd: "+e.Message, attrs...)
	if e.Level > zapcore.ErrorLevel && c.flush != nil { // it may be the last line of this process
		c.flush()
	}
	return nil
}

// logLevel demotes an error that every new member logs at its start: it tries again, and then it
// works.
func logLevel(e zapcore.Entry) slog.Level {
	if e.Message == "failed to update storage version" {
		return slog.LevelDebug
	}
	return slog.LevelError
}

func (c *core) Sync() error { return nil }
