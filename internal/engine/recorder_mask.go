package engine

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// masker masks secrets in what is logged. It is safe for concurrent use.
type masker struct {
	set     *settings.Settings
	environ []string // of the process, "K=V"
	once    sync.Once
	known   *strings.Replacer // see replacer
}

// params masks what looks like a secret in params, and the secrets of the
// settings; nil if the params are not JSON.
func (m *masker) params(params json.RawMessage) json.RawMessage {
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

// message masks secrets in the error of a call, part of which a tool has written.
func (m *masker) message(text string) string {
	if text == "" {
		return ""
	}
	masked, _ := secret.Value("", m.replacer().Replace(text)).(string)
	return masked
}

// replacer returns a replacer that masks the secrets of the settings.
func (m *masker) replacer() *strings.Replacer {
	m.once.Do(func() { m.known = secret.NewReplacer(m.secrets()) })
	return m.known
}

// secrets returns the secret values in the environments and headers of the settings, both
// plain and in base64. It does not run programs or read files to get them.
func (m *masker) secrets() (out []string) {
	environ := expand.NewEnviron(m.environ)
	add := func(pairs []settings.Pair) {
		for _, p := range pairs {
			value := p.Value
			switch kind, rest, _ := strings.Cut(value, ":"); {
			case kind == "cmd" || kind == "file" || !secret.Named(p.Name):
				continue
			case kind == "env":
				value = environ.Get(rest)
			}
			value, err := expand.Text(value, environ.Lookup)
			if err != nil {
				continue
			}
			_, token, _ := strings.Cut(value, " ") // Bearer …
			out = append(out, value, token, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	add(m.set.Env)
	for _, s := range m.set.Entries() {
		add(s.Env)
		add(s.Headers)
	}
	for _, origin := range m.set.Fetch.Headers {
		add(origin.Headers)
	}
	return out
}
