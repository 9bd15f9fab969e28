package content

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// displayResult returns the result as displayed to the user: its texts joined
// without a separator if it is all text, otherwise the content (or the whole
// response if it has no content list) as JSON in a Markdown fence, like the
// Gemini CLI.
//
// blocks are the elements of the content, and texts are those of them that were
// decoded as text; both are nil if there is no content list.
func displayResult(tool string, raw json.RawMessage, blocks []json.RawMessage, texts []string) string {
	if texts == nil {
		return fence(json.RawMessage(`{"name":` + jsString(tool) + `,"response":` + string(raw) + `}`))
	}
	if len(texts) == len(blocks) {
		return strings.Join(texts, "")
	}
	if s, ok := joinTexts(blocks); ok {
		return s
	}
	return fence(jsonx.Get(raw, "content"))
}

// joinTexts joins the texts of blocks, and reports whether all of them have one.
func joinTexts(blocks []json.RawMessage) (string, bool) {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		raw := jsonx.Get(b, "text")
		if raw == nil {
			return "", false
		}
		texts[i] = plain(raw)
	}
	return strings.Join(texts, ""), true
}

// plain converts a JSON value to a string as JavaScript's join does.
func plain(raw json.RawMessage) string {
	if s, ok := jsonx.Text(raw); ok {
		return s
	}
	if jsonx.IsNull(raw) {
		return ""
	}
	if list, ok := jsonx.Elements(raw); ok {
		out := make([]string, len(list))
		for i, e := range list {
			out[i] = plain(e)
		}
		return strings.Join(out, ",")
	}
	return string(raw)
}

// fence puts JSON into a Markdown fence, indented by two as JSON.stringify
// does. Deeply nested JSON, which indentation would inflate, is left as it is.
func fence(raw json.RawMessage) string {
	p := &printer{limit: 4*len(raw) + 1<<16}
	p.value(raw, "\n")
	if p.b.Len() > p.limit {
		p.b.Reset()
		p.b.Write(raw)
	}
	return "```json\n" + p.b.String() + "\n```"
}

type printer struct {
	b     strings.Builder
	limit int
}

// value prints a value; margin is the newline and indentation of its end.
func (p *printer) value(raw json.RawMessage, margin string) {
	if p.b.Len() > p.limit || len(raw) == 0 {
		return
	}
	inner := margin + "  "
	switch raw[0] {
	case '{':
		p.b.WriteByte('{')
		n := 0
		for k, v := range jsonx.Members(raw) {
			p.separate(n, inner)
			p.b.WriteString(jsString(k) + ": ")
			p.value(v, inner)
			n++
		}
		p.close(n, margin, '}')
	case '[':
		p.b.WriteByte('[')
		list, _ := jsonx.Elements(raw)
		for i, v := range list {
			p.separate(i, inner)
			p.value(v, inner)
		}
		p.close(len(list), margin, ']')
	case '"':
		s, _ := jsonx.Text(raw)
		p.b.WriteString(jsString(s))
	default:
		p.b.WriteString(jsNumber(string(raw)))
	}
}

func (p *printer) separate(n int, margin string) {
	if n > 0 {
		p.b.WriteByte(',')
	}
	p.b.WriteString(margin)
}

func (p *printer) close(n int, margin string, bracket byte) {
	if n > 0 {
		p.b.WriteString(margin)
	}
	p.b.WriteByte(bracket)
}

// jsString quotes s like JSON.stringify: it escapes only control characters,
// quotes and backslashes.
func jsString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x20:
			b.WriteRune(r)
		case strings.ContainsRune("\b\f\n\r\t", r):
			b.WriteByte('\\')
			b.WriteByte("btn_fr"[r-'\b'])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// jsNumber prints a number as JavaScript does, and anything else unchanged.
func jsNumber(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	if f == 0 {
		return "0"
	}
	out, err := json.Marshal(f)
	if err != nil {
		return s
	}
	return string(out)
}
