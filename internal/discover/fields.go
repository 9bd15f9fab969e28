package discover

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

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
	quarantine := unusable(&def, raw, d.limits.Schema)
	if quarantine != nil {
		d.diagnose(registry.SeverityError, "tool_quarantined", r.tool, quarantine.Error()+"; the tool was left out", "")
		def.InputSchema, def.OutputSchema, def.Annotations = json.RawMessage(noParams), nil, nil
	}
	d.tools = append(d.tools,
		declaration{original: name, definition: def, fields: o, quarantine: quarantine, printed: raw != nil})
}

// noParams is the schema of a tool without params.
const noParams = `{"type":"object","properties":{}}`

// unusable returns why a definition parsed from raw cannot be used, or nil if it
// can.
func unusable(def *registry.Definition, raw json.RawMessage, max int64) error {
	for _, schema := range []json.RawMessage{def.InputSchema, def.OutputSchema, def.Annotations} {
		if reason := overLimit(schema, max); reason != "" {
			return errors.New("its schema " + reason)
		}
	}
	if key, twice := jsonx.DuplicateKey(raw); twice {
		return fmt.Errorf("its definition repeats the key %s", text.Quote(key))
	}
	return nil
}

// overLimit describes the limit that a schema exceeds. It returns "" if there is
// none.
func overLimit(schema json.RawMessage, max int64) string {
	if int64(len(schema)) > max {
		return fmt.Sprintf("has %d bytes, over the limit of %d (limits.schema)", len(schema), max)
	}
	if jsonx.Depth(schema) > registry.MaxDepth {
		return fmt.Sprintf("is nested deeper than %d", registry.MaxDepth)
	}
	return ""
}

// fieldReader reads the fields of one declaration. A field of the wrong type is
// reported and treated as absent.
type fieldReader struct {
	d    *declarations
	tool string
	o    object
}

func (r fieldReader) wrong(field, want string) {
	r.d.diagnose(registry.SeverityWarning, "field_ignored", r.tool,
		fmt.Sprintf("its %q is %s, not %s; ignored", field, jsonx.KindOf(r.o[field]), want), "")
}

// has reports whether a field is present; null means absent.
func (r fieldReader) has(field string) bool {
	raw := r.o[field]
	return len(raw) > 0 && string(raw) != "null"
}

// into decodes a field into a variable. It returns false if the field is absent or
// has another type.
func (r fieldReader) into(field, want string, v any) bool {
	if !r.has(field) {
		return false
	}
	if json.Unmarshal(r.o[field], v) != nil {
		r.wrong(field, want)
		return false
	}
	return true
}

func (r fieldReader) text(field, otherwise string) string {
	var s string
	if r.into(field, "a string", &s) && s != "" {
		return s
	}
	return otherwise
}

func (r fieldReader) boolean(field string) bool {
	var b bool
	return r.into(field, "a boolean", &b) && b
}

func (r fieldReader) texts(field string) []string {
	var list []string
	if !r.into(field, "a list of strings", &list) {
		return nil
	}
	return list
}

func (r fieldReader) objectOf(field string) json.RawMessage {
	if !r.has(field) {
		return nil
	}
	if raw := r.o[field]; raw[0] == '{' {
		return raw
	}
	r.wrong(field, "an object")
	return nil
}

func (r fieldReader) category() registry.Category {
	var c registry.Category
	if !r.into("category", "a string", &c) || strings.TrimSpace(string(c)) == "" {
		return registry.CategoryOther
	}
	return c
}

func (r fieldReader) examples() []registry.Example {
	if !r.has("examples") {
		return nil
	}
	list, err := readList(r.o["examples"])
	if err != nil {
		r.wrong("examples", "a list")
		return nil
	}
	var out []registry.Example
	for _, raw := range list {
		o, err := readObject(raw)
		if err != nil {
			r.wrong("examples", "a list of objects")
			continue
		}
		var e registry.Example
		if json.Unmarshal(o["description"], &e.Description) != nil {
			e.Description = ""
		}
		e.Params = o["params"]
		out = append(out, e)
	}
	return out
}

// description reads the description. Gemini CLI converts any value to text, so a
// list of lines is joined by commas. This does the same, with a diagnostic.
func (r fieldReader) description() string {
	if !r.has("description") {
		return ""
	}
	raw := r.o["description"]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		r.d.diagnose(registry.SeverityWarning, "field_coerced", r.tool,
			"its description is a list, not a string; its parts were joined", "")
		return strings.Join(list, ",")
	}
	r.wrong("description", "a string")
	return ""
}

// parameters returns the input schema byte for byte: the first of the two possible
// fields that is an object. If neither is, the tool has no params.
func (r fieldReader) parameters() json.RawMessage {
	for _, field := range []string{"parameters", "parametersJsonSchema"} {
		if raw := r.o[field]; len(raw) > 0 && raw[0] == '{' {
			return raw
		}
		if r.has(field) {
			r.wrong(field, "an object")
		}
	}
	for _, field := range []string{"inputSchema", "input_schema"} {
		if r.has(field) {
			r.d.diagnose(registry.SeverityWarning, "field_ignored", r.tool,
				fmt.Sprintf("its %q is not read here, so it has no parameters", field), `name it "parameters"`)
		}
	}
	return json.RawMessage("{}")
}
