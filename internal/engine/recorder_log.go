package engine

import (
	"context"
	"fmt"
	"log/slog"
)

// maskedLog is a handler of log records that masks the secrets of the settings in them: what is
// logged comes from servers, commands and APIs, too.
type maskedLog struct {
	slog.Handler
	hide func(string) string
}

// Handle implements [slog.Handler].
func (l maskedLog) Handle(ctx context.Context, r slog.Record) error {
	masked := slog.NewRecord(r.Time, r.Level, l.hide(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		masked.AddAttrs(l.attr(a))
		return true
	})
	return l.Handler.Handle(ctx, masked)
}

// WithAttrs implements [slog.Handler].
func (l maskedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	masked := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		masked[i] = l.attr(a)
	}
	return maskedLog{l.Handler.WithAttrs(masked), l.hide}
}

// WithGroup implements [slog.Handler].
func (l maskedLog) WithGroup(name string) slog.Handler {
	return maskedLog{l.Handler.WithGroup(name), l.hide}
}

func (l maskedLog) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, l.hide(v.String()))
	case slog.KindAny:
		if text := fmt.Sprint(v.Any()); l.hide(text) != text {
			return slog.String(a.Key, l.hide(text))
		}
	case slog.KindGroup:
		parts := make([]any, len(v.Group()))
		for i, part := range v.Group() {
			parts[i] = l.attr(part)
		}
		return slog.Group(a.Key, parts...)
	}
	return a
}
