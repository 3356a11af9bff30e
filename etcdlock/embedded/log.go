package embedded

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger passes on what etcd says of errors, and nothing else: it is talkative. Before etcd ends the process (a disk that fails,
// a damaged file) it says why at level fatal; the process then exits with status 1 as etcd wants it, because what it would
// do next is not to be trusted.
func newLogger(to *slog.Logger, flush func()) *zap.Logger {
	return zap.New(&core{LevelEnabler: zapcore.ErrorLevel, to: to, flush: flush})
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
