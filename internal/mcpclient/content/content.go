// Package content converts results of MCP tools and contents of prompts to values
// of package registry and to text for display.
package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Result converts the raw result of tools/call (revisions 2024-11-05 to
// 2026-07-28). Nothing is lost: unknown parts are kept as their JSON text.
func Result(tool string, raw json.RawMessage) registry.Result {
	if jsonx.KindOf(raw) != jsonx.Object {
		return registry.ErrorResult(registry.ErrorExecution,
			"the server's answer is not a result object: "+text.Valid(text.Head(raw, 300)))
	}
	var r registry.Result
	var content, isError json.RawMessage
	for key, value := range jsonx.Members(raw) {
		switch key {
		case "content":
			content = value
		case "structuredContent":
			r.Structured = value
		case "isError":
			isError = value
		case "_meta":
			r.Meta = value
		}
	}
	r.Meta = registry.Meta(r.Meta)
	blocks, listed := List(content)
	var texts []string
	if listed {
		texts = make([]string, 0, len(blocks))
	}
	for _, b := range blocks {
		c, known := Block(b)
		r.Content = append(r.Content, c)
		if known && c.Type == registry.ContentText {
			texts = append(texts, c.Text)
		}
	}
	switch {
	case len(r.Content) == 0 && r.Structured != nil:
		r.Content = []registry.Content{registry.TextContent(string(r.Structured))}
	case listed:
		r.Content = registry.OrStructured(r.Content, r.Structured)
	default: // revisions before 2024-11-05, or non-standard
		if inner := jsonx.Get(raw, "toolResult"); jsonx.KindOf(jsonx.Get(inner, "content")) == jsonx.Array {
			return Result(tool, inner) // as servers send that serve old clients and new ones
		}
		r.Content = []registry.Content{registry.TextContent(string(raw))}
	}
	if s := string(isError); s != "" && s != "false" && s != "null" {
		r.IsError, r.ErrorCategory = true, registry.ErrorExecution
	}
	r.Summary = summaryOf(tool, r)
	if shown := displayResult(tool, raw, blocks, texts); strings.TrimSpace(shown) != "" {
		r.Display.Text = shown
	}
	return r
}

// List returns the elements of a list in a server's answer; false if raw is not a list. null counts
// as an empty list, because servers in Go send it for one.
func List(raw json.RawMessage) ([]json.RawMessage, bool) {
	if jsonx.KindOf(raw) == jsonx.Null {
		return nil, true
	}
	return jsonx.Elements(raw)
}

// Block converts one content block and reports whether it was understood;
// if not, it is kept as text.
func Block(raw json.RawMessage) (registry.Content, bool) {
	fields := map[string]json.RawMessage{}
	for k, v := range jsonx.Members(raw) {
		if !jsonx.IsNull(v) && !jsonx.IsEmptyList(v) {
			fields[k] = v
		}
	}
	c := registry.Content{Annotations: fields["annotations"], Meta: fields["_meta"]}
	kind, _ := jsonx.Text(fields["type"])
	c.Type = registry.ContentType(kind)
	ok := false
	switch c.Type {
	case registry.ContentText:
		c.Text, ok = textOf(raw)
	case registry.ContentImage, registry.ContentAudio:
		c.MIMEType, _ = jsonx.Text(fields["mimeType"])
		ok = decode(&c, fields["data"])
	case registry.ContentResource:
		ok = Resource(&c, fields["resource"])
	case registry.ContentResourceLink:
		ok = link(&c, fields)
	}
	if s, isText := jsonx.Text(raw); isText { // as some servers write the messages of prompts
		return registry.TextContent(s), false
	}
	if !ok {
		return registry.TextContent(string(raw)), false
	}
	return c.Settled(), true
}

// Resource adds the URI and the text or bytes of a resource to c, and reports
// whether the resource has text, which may be empty, or bytes.
func Resource(c *registry.Content, resource json.RawMessage) bool {
	if jsonx.KindOf(resource) != jsonx.Object {
		return false
	}
	c.URI, _ = jsonx.Text(jsonx.Get(resource, "uri"))
	c.MIMEType, _ = jsonx.Text(jsonx.Get(resource, "mimeType"))
	if meta := jsonx.Get(resource, "_meta"); jsonx.KindOf(meta) == jsonx.Object {
		c.ResourceMeta = meta
	}
	var ok bool
	if blob := jsonx.Get(resource, "blob"); !jsonx.IsNull(blob) {
		ok = decode(c, blob)
	} else {
		c.Text, ok = textOf(resource)
	}
	return ok
}

// textOf returns the text of a block or resource, and whether it has one. If there are only
// descriptive members, the text is empty, because some servers omit an empty text.
func textOf(raw json.RawMessage) (string, bool) {
	for name, value := range jsonx.Members(raw) {
		switch name {
		case "type", "uri", "mimeType", "name", "title", "description", "size", "annotations", "icons", "_meta":
		default:
			if !jsonx.IsNull(value) {
				return jsonx.Text(jsonx.Get(raw, "text"))
			}
		}
	}
	return "", true
}

func link(c *registry.Content, fields map[string]json.RawMessage) bool {
	var ok bool
	if c.URI, ok = jsonx.Text(fields["uri"]); !ok {
		return false
	}
	c.Name, _ = jsonx.Text(fields["name"])
	c.Title, _ = jsonx.Text(fields["title"])
	c.Description, _ = jsonx.Text(fields["description"])
	c.MIMEType, _ = jsonx.Text(fields["mimeType"])
	if json.Unmarshal(fields["size"], &c.Size) != nil {
		c.Size = 0
	}
	return true
}

// decode adds the bytes of a base64 JSON string, and reports whether raw is one.
func decode(c *registry.Content, raw json.RawMessage) (ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	encoded := []byte(raw[1 : len(raw)-1])
	if bytes.IndexByte(encoded, '\\') >= 0 {
		s, valid := jsonx.Text(raw)
		if !valid {
			return false
		}
		encoded = []byte(s)
	}
	var kind string
	c.Data, kind, ok = registry.DecodeBase64(encoded)
	c.MIMEType = cmp.Or(c.MIMEType, kind)
	return ok
}

// summaryOf describes a result in one line.
func summaryOf(tool string, r registry.Result) string {
	var kinds []registry.ContentType
	counts := map[registry.ContentType]int{}
	for _, c := range r.Content {
		kinds = text.AppendNew(kinds, c.Type)
		counts[c.Type]++
	}
	parts := make([]string, len(kinds))
	for i, k := range kinds {
		parts[i] = fmt.Sprintf("%d %s", counts[k], k)
	}
	verb := "returned"
	if r.IsError {
		verb = "failed with"
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s %s no content", tool, verb)
	}
	return fmt.Sprintf("%s %s %s", tool, verb, strings.Join(parts, ", "))
}

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

func joinTexts(blocks []json.RawMessage) (string, bool) {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		raw := jsonx.Get(b, "text")
		if raw == nil {
			return "", false
		}
		texts[i] = joinString(raw)
	}
	return strings.Join(texts, ""), true
}

// joinString converts a JSON value to a string as JavaScript's join does.
func joinString(raw json.RawMessage) string {
	if s, ok := jsonx.Text(raw); ok {
		return s
	}
	if jsonx.IsNull(raw) {
		return ""
	}
	if list, ok := jsonx.Elements(raw); ok {
		out := make([]string, len(list))
		for i, e := range list {
			out[i] = joinString(e)
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

// jsString quotes s like JSON.stringify, which escapes only control characters, quotes and
// backslashes.
func jsString(s string) string {
	quoted := jsonx.Quote(s)
	if !strings.Contains(quoted, `\u`) {
		return quoted
	}
	return strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029", `\ufffd`, "\ufffd").Replace(quoted)
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
