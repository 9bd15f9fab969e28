package engine

import (
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/exec"
)

// errorText returns the error of a failed call; "" if the call did not fail.
func errorText(r exec.Record) string {
	switch {
	case r.Err != nil:
		return r.Err.Error()
	case !r.Result.IsError:
		return ""
	case r.Result.Summary != "":
		return r.Result.Summary
	}
	return r.Result.Text()
}

// valueHead is how many bytes of a value's beginning identify it in a text that
// may have been cut. Shorter values must occur whole.
const valueHead = 16

// withoutValues removes the values of params from a text, because they are not logged
// unless the settings enable it. If the params are too long to search, it returns "".
func withoutValues(text string, params json.RawMessage) string {
	var v any
	if text == "" || len(params) > maxLogged || len(params) > 0 && json.Unmarshal(params, &v) != nil {
		return ""
	}
	for _, value := range stringValues(v, nil) {
		text = withoutValue(text, value)
		text = withoutValue(text, quoted(value))
	}
	return text
}

// stringValues appends the strings in a JSON value that are long enough to be
// private.
func stringValues(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		if len(v) > 2 {
			out = append(out, v)
		}
	case []any:
		for _, item := range v {
			out = stringValues(item, out)
		}
	case map[string]any:
		for _, item := range v {
			out = stringValues(item, out)
		}
	}
	return out
}

func withoutValue(text, value string) string {
	head := value[:min(len(value), valueHead)]
	for from := 0; ; {
		i := strings.Index(text[from:], head)
		if i < 0 || head == "" {
			return text
		}
		i += from
		n := 0
		for n < len(value) && i+n < len(text) && text[i+n] == value[n] {
			n++
		}
		text = text[:i] + "…" + text[i+n:]
		from = i + len("…")
	}
}

// quoted returns a text as it is written between the quotes of a JSON string.
func quoted(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(data[1 : len(data)-1])
}

// maxLogged is the size of params above which none of them are logged, because
// masking has to read all of them.
const maxLogged = 64 << 10
