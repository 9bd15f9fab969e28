package engine

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// maskedParams masks what looks like a secret in params, and the secrets of the
// settings; nil if the params are not JSON.
func (a *callRecorder) maskedParams(params json.RawMessage) json.RawMessage {
	v, err := jsonx.Decode(params)
	if err != nil {
		return nil
	}
	data, err := json.Marshal(secret.Value("", replaced(v, a.known())))
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

// maskedError masks secrets in the error of a call, part of which a tool has written.
func (a *callRecorder) maskedError(message string) string {
	if message == "" {
		return ""
	}
	masked, _ := secret.Value("", a.known().Replace(message)).(string)
	return masked
}

// known returns a replacer that masks the secrets of the settings.
func (a *callRecorder) known() *strings.Replacer {
	a.masking.Do(func() { a.mask = secret.NewReplacer(a.secrets()) })
	return a.mask
}

// secrets returns the secret values in the environments and headers of the settings, both
// plain and in base64. It does not run programs or read files to get them.
func (a *callRecorder) secrets() (out []string) {
	environ := expand.NewEnviron(a.opts.Environ)
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
	add(a.set.Env)
	for _, s := range a.set.Servers {
		add(s.Env)
		add(s.Headers)
	}
	for _, origin := range a.set.Fetch.Headers {
		add(origin.Headers)
	}
	return out
}
