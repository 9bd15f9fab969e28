package discover

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// parseDeclarations parses the output of a discovery command: a JSON array whose
// items are {function_declarations: […]}, {functionDeclarations: […]} or one
// declaration with a name. An error means that none of the output is usable.
func parseDeclarations(stdout []byte, limits Limits) (*declarations, error) {
	data := trim([]byte(decode(stdout)))
	items, err := readArray(data)
	if err != nil {
		return nil, err
	}
	d := &declarations{source: registry.SourceCommand, limits: limits}
	for i, item := range items {
		d.item(i+1, item)
	}
	return d, nil
}

func readArray(data []byte) ([]json.RawMessage, error) {
	if len(data) == 0 {
		return nil, errors.New(
			"it printed nothing on stdout; it should print a JSON array of declarations, [] for none")
	}
	var items []json.RawMessage
	err := json.Unmarshal(data, &items)
	if err != nil && jsonx.Depth(data) > readable {
		// One excessively nested schema must not affect the others. Without its inner
		// levels the array can be parsed, and the schema is rejected later.
		data = jsonx.Flatten(data, readable)
		err = json.Unmarshal(data, &items)
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, notJSON(data, syntax)
	case err != nil || items == nil:
		hint := ""
		if o, ok := readObject(data); ok {
			hint = "; " + cmp.Or(unwrapped(o), "wrap it in [ ]")
		}
		return nil, fmt.Errorf("it should print a JSON array, not %s%s", jsonx.KindOf(data), hint)
	}
	return items, nil
}

// readable is a nesting depth that encoding/json accepts. The limit of
// encoding/json is 10,000.
const readable = 5000

// unwrapped returns the hint for an object that has declarations in one of its members; "" for
// other objects.
func unwrapped(o object) string {
	for _, key := range []string{"tools", "functions", "function_declarations", "functionDeclarations"} {
		if _, ok := jsonx.Elements(o[key]); ok {
			return fmt.Sprintf("print the array in its member %q", key)
		}
	}
	for _, wrapper := range []string{"function", "toolSpec"} { // OpenAI's form, and Bedrock's
		if inner, ok := readObject(o[wrapper]); ok && isTruthy(inner["name"]) {
			return fmt.Sprintf("print what is in its member %q, without the wrapper", wrapper)
		}
	}
	return ""
}

// notJSON returns an error with the syntax error and the first line of the output.
func notJSON(data []byte, e error) error {
	if bytes.IndexByte(data[:min(len(data), 8)], 0) >= 0 {
		return errors.New("its output is not UTF-8; it looks like UTF-16: print UTF-8")
	}
	if syntax := jsonx.Check(data, jsonx.Options{}); syntax != nil {
		e = syntax
	}
	hint := ""
	if looksLikeRunner(data) {
		hint = "; it begins with a banner like npm's: use npm run --silent"
	}
	return fmt.Errorf("its output is not JSON: %s; the first line is %q%s", e, firstLine(data), hint)
}

// looksLikeRunner reports whether output begins with a line that npm, pnpm and yarn
// print before a script's own output.
func looksLikeRunner(data []byte) bool {
	s := string(data[:min(len(data), 512)])
	return strings.HasPrefix(s, "> ") || strings.HasPrefix(s, "yarn run v") || strings.HasPrefix(s, "$ ")
}

// firstLine returns the beginning of data's first line as text.
func firstLine(data []byte) string {
	const shown = 80
	return text.ClipRunes(text.FirstLine(string(text.Head(data, 4*shown))), shown)
}

func (d *declarations) item(i int, raw json.RawMessage) {
	place := fmt.Sprintf("item %d", i)
	o, ok := readObject(raw)
	if !ok {
		d.skip(place, "is %s, not an object", jsonx.KindOf(raw))
		return
	}
	for _, key := range []string{"function_declarations", "functionDeclarations"} {
		list, ok := jsonx.Elements(o[key])
		if !ok {
			continue
		}
		for j, f := range list {
			d.function(fmt.Sprintf("%s, declaration %d", place, j+1), f)
		}
		return
	}
	if !isTruthy(o["name"]) {
		d.diagnose(registry.SeverityWarning, "declaration_skipped", "",
			place+" has neither function_declarations nor a name; skipped", unwrapped(o))
		return
	}
	d.declare(place, o, raw)
}

func (d *declarations) function(place string, raw json.RawMessage) {
	o, ok := readObject(raw)
	switch {
	case !ok:
		d.skip(place, "is %s, not an object", jsonx.KindOf(raw))
	case isTruthy(o["name"]):
		d.declare(place, o, raw)
	case d.unnamed != "" && unwrapped(o) == "" && slices.ContainsFunc(
		[]string{"description", "category", "parameters", "parametersJsonSchema"},
		func(field string) bool { return isPresent(o[field]) }):
		o["name"] = json.RawMessage(jsonx.Quote(d.unnamed))
		d.declare(place, o, raw)
	default:
		d.diagnose(registry.SeverityWarning, "declaration_skipped", "", place+" has no name; skipped", unwrapped(o))
	}
}

// quarantine adds a tool that cannot be used; name may be "".
func (d *declarations) quarantine(name, reason, hint string) {
	if name == "" || len(d.tools) >= d.limits.Tools {
		d.diagnose(registry.SeverityError, "tool_quarantined", "", "a tool was left out: "+reason, hint)
		return
	}
	t := declaration{
		original:   name,
		definition: registry.Definition{Name: registry.ValidName(name), InputSchema: json.RawMessage(noParams)},
	}
	d.spoil(&t, errors.New(reason), hint)
	d.tools = append(d.tools, t)
}

func (d *declarations) spoil(t *declaration, reason error, hint string) {
	t.quarantine = reason
	d.diagnose(registry.SeverityError, "tool_quarantined",
		t.definition.Name, reason.Error()+"; the tool was left out", hint)
}

// isTruthy reports whether a value is true in JavaScript.
func isTruthy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`:
		return false
	}
	var n float64
	if jsonx.KindOf(raw) == jsonx.Number && json.Unmarshal(raw, &n) == nil {
		return n != 0
	}
	return true
}

// trim removes the characters that JavaScript's trim removes: all kinds of white
// space, and byte order marks.
func trim(b []byte) []byte {
	return bytes.TrimFunc(b, func(r rune) bool {
		return r == '\uFEFF' || unicode.IsSpace(r) && r != '\u0085'
	})
}

// maxOriginal is the maximum length of a declared name in bytes. Names are passed
// as arguments.
const maxOriginal = 4096

// declare reads the declaration of one tool, o, parsed from the JSON raw. Unusable
// fields are reported and ignored. The tool is skipped only if it could not be
// called, and quarantined if its schema exceeds a limit or it has a duplicate key.
func (d *declarations) declare(place string, o object, raw json.RawMessage) {
	var name string
	if json.Unmarshal(o["name"], &name) != nil {
		d.skip(place, "has a name that is %s, not a string", jsonx.KindOf(o["name"]))
		return
	}
	if strings.ContainsRune(name, 0) || len(name) > maxOriginal {
		d.skip(place, "has a name that cannot be an argument of the call command (a NUL byte, or over %d bytes)",
			maxOriginal)
		return
	}
	if len(d.tools) >= d.limits.Tools {
		d.left++
		return
	}
	r := fieldReader{d: d, tool: registry.ValidName(name), o: o}
	def := registry.Definition{
		Name:            r.tool,
		DisplayName:     r.text("displayName", name),
		Description:     r.description(),
		Category:        r.category(),
		Tags:            r.texts("tags"),
		Version:         r.text("version", ""),
		Author:          r.text("author", ""),
		Icon:            r.text("icon", ""),
		Optional:        r.boolean("optional"),
		Permissions:     r.texts("permissions"),
		Examples:        r.examples(),
		Annotations:     r.objectOf("annotations"),
		OutputMarkdown:  r.boolean("isOutputMarkdown"),
		CanUpdateOutput: r.boolean("canUpdateOutput"),
		InputSchema:     r.parameters(),
		OutputSchema:    r.objectOf("outputSchema"),
	}
	t := declaration{original: name, definition: def, fields: o, printed: raw != nil}
	if reason := unusable(&def, raw, d.limits.Schema); reason != nil {
		t.definition.InputSchema, t.definition.OutputSchema, t.definition.Annotations = json.RawMessage(noParams), nil, nil
		d.spoil(&t, reason, "")
	}
	d.tools = append(d.tools, t)
}
