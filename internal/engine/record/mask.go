package record

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// Mask masks secrets in what is logged, recorded and exported. The table of settings says which
// settings are secrets. It is safe for concurrent use.
type Mask struct {
	set     *settings.Settings
	environ []string // of the process, "K=V"

	mu    sync.Mutex
	seen  []string
	known *strings.Replacer // see replacer
}

// NewMask returns a mask for the secrets of settings; environ is the environment of the process.
func NewMask(set *settings.Settings, environ []string) *Mask {
	return &Mask{set: set, environ: environ}
}

// Params masks what looks like a secret in params, and the secrets of the
// settings; nil if the params are not JSON.
func (m *Mask) Params(params json.RawMessage) json.RawMessage {
	v, err := jsonx.Decode(params)
	if err != nil {
		return nil
	}
	data, err := json.Marshal(secret.Value("", replaced(v, m.replacer())))
	if err != nil {
		return nil
	}
	return text.EscapeJSON(data)
}

// replaced applies r to the strings, names and numbers of decoded JSON. A number that it
// changes becomes a string.
func replaced(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[r.Replace(name)] = replaced(x, r)
		}
		return out
	case []any:
		for i := range v {
			v[i] = replaced(v[i], r)
		}
		return v
	case string:
		return r.Replace(v)
	case json.Number:
		if text := r.Replace(v.String()); text != v.String() {
			return text
		}
	}
	return v
}

// Message masks secrets in the error of a call, part of which a tool has written.
func (m *Mask) Message(text string) string {
	if text == "" {
		return ""
	}
	masked, _ := secret.Value("", m.replacer().Replace(text)).(string)
	return masked
}

// Hide masks the secrets of the settings in a text.
func (m *Mask) Hide(text string) string { return m.replacer().Replace(text) }

func (m *Mask) replacer() *strings.Replacer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = secret.NewReplacer(m.withSeen(m.set.Merged().Secrets))
	}
	return m.known
}

// withSeen returns the secrets of the settings and the values of references, without folders that
// appear in nearly every message: PWD, by its name, looks like a password.
func (m *Mask) withSeen(secrets func(expand.Lookup) []string) []string {
	environ := expand.NewEnviron(m.environ)
	folders := []string{environ.Home(), environ.Get("PWD"), environ.Get("OLDPWD"), m.set.ProjectRoot, m.set.Workspace}
	return slices.DeleteFunc(append(secrets(environ.Lookup), m.seen...),
		func(value string) bool { return slices.Contains(folders, value) })
}

// Secrets returns the secrets of one entry of a setting, such as openapi, and the values of all
// references.
func (m *Mask) Secrets(setting, entry string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.withSeen(func(environ expand.Lookup) []string {
		return m.set.Merged().SecretsOf(setting, entry, environ)
	})
}

// Add adds the value of a reference.
func (m *Mask) Add(value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value = strings.TrimSpace(value); !slices.Contains(m.seen, value) {
		m.seen, m.known = append(m.seen, value), nil
	}
}

// Log returns a handler of log records that masks the secrets of the settings in them: what is
// logged comes from servers, commands and APIs, too.
func (m *Mask) Log(h slog.Handler) slog.Handler { return maskedLog{h, m.Hide} }

type maskedLog struct {
	slog.Handler
	hide func(string) string
}

func (l maskedLog) Handle(ctx context.Context, r slog.Record) error {
	masked := slog.NewRecord(r.Time, r.Level, l.hide(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		masked.AddAttrs(l.attr(a))
		return true
	})
	return l.Handler.Handle(ctx, masked)
}

func (l maskedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	masked := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		masked[i] = l.attr(a)
	}
	return maskedLog{l.Handler.WithAttrs(masked), l.hide}
}

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
