package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// JSONText formats JSON for a person: indented, with invisible characters
// escaped, and colored if color is set. Text that is not JSON is only escaped.
func JSONText(data []byte, color bool) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return ui.Visible(string(data))
	}
	indented := text.EscapeJSON(b.Bytes())
	if !color {
		return string(indented)
	}
	return ui.Paint(jsonSpans(string(indented)), true)
}

// jsonSpans styles the tokens of valid JSON: keys, strings, numbers, words.
func jsonSpans(data string) []ui.Span {
	var spans []ui.Span
	for at := 0; at < len(data); {
		n := tokenLength(data[at:])
		token, rest := data[at:at+n], strings.TrimLeft(data[at+n:], " ")
		style := ui.Style(0)
		switch c := token[0]; {
		case c == '"' && strings.HasPrefix(rest, ":"):
			style = ui.Blue | ui.Bold
		case c == '"':
			style = ui.Green
		case c == 't' || c == 'f':
			style = ui.Yellow
		case c == 'n':
			style = ui.Dim
		case c == '-' || c >= '0' && c <= '9':
			style = ui.Cyan
		}
		spans = append(spans, ui.Span{Text: token, Style: style})
		at += n
	}
	return spans
}

// tokenLength returns the length of the string, the scalar or the run of
// punctuation at the beginning of valid JSON.
func tokenLength(data string) int {
	const punctuation = "{}[],: \n"
	switch {
	case data[0] == '"':
		for i := 1; i < len(data); i++ {
			switch data[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(data)
	case strings.IndexByte(punctuation, data[0]) >= 0:
		return len(data) - len(strings.TrimLeft(data, punctuation))
	}
	if n := strings.IndexAny(data, punctuation); n > 0 {
		return n
	}
	return len(data)
}
