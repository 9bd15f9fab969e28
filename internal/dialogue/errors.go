package dialogue

import (
	"encoding/json"
	"errors"
	"fmt"
)

// UnreadableError tells that data is no response of a format.
type UnreadableError struct {
	Format string
	Reason string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("reading a response of format %s: %s", e.Format, e.Reason)
}

// errUnrecognised tells that nothing of the format was found.
var errUnrecognised = errors.New("nothing of this format is in it")

func (f Format) unreadable(format string, args ...any) error {
	return &UnreadableError{Format: f.Name, Reason: fmt.Sprintf(format, args...)}
}

// unrecognised says what was looked for.
func (f Format) unrecognised(data json.RawMessage) error {
	if other := f.looksLike(data); other != "" {
		return f.unreadable("%s; it looks like format %s", errUnrecognised, other)
	}
	return f.unreadable("%s: %s", errUnrecognised, expected(f.Name))
}

// looksLike names another format that finds calls in the data, "" if none does.
func (f Format) looksLike(data json.RawMessage) string {
	for _, other := range Formats() {
		var t Turn
		if other.Name != f.Name && other.decode(&t, data) == nil && len(t.Calls) > 0 {
			return other.Name
		}
	}
	return ""
}

// expected says what is looked for.
func expected(format string) string {
	switch format {
	case "openai", "mistral":
		return "choices, a message with tool_calls, or a list of tool calls"
	case "openai-responses":
		return "output, or a list of its items"
	case "anthropic":
		return "a message of role assistant with content, or a list of its blocks"
	case "bedrock":
		return "output with a message, a message of role assistant with content, or a list of its blocks"
	case "gemini":
		return "candidates, a content with parts, or a list of function calls"
	}
	return "a tools/call request, its params, or a list of these"
}

// apiError returns the error that an API answered with instead of a message.
func apiError(o object) error {
	raw, ok := o["error"]
	if !ok || isNull(raw) {
		return nil
	}
	text := asText(raw)
	if e := asObject(raw); e != nil {
		text = e.text("message")
	}
	if text == "" {
		text = string(raw)
	}
	return fmt.Errorf("it is an error of the API: %.500s", text)
}
