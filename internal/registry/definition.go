package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Category describes the effects of a tool; the policy's defaults depend on it. The
// zero value means [CategoryOther], which is treated as mutating.
type Category string

// The categories.
const (
	CategoryRead    Category = "read"
	CategoryWrite   Category = "write"
	CategoryCommand Category = "command"
	CategoryNetwork Category = "network"
	CategoryOther   Category = "other"
)

// Valid reports whether c is one of the named categories.
func (c Category) Valid() bool {
	return slices.Contains([]Category{CategoryRead, CategoryWrite, CategoryCommand, CategoryNetwork, CategoryOther}, c)
}

// Names of sources. The prefixes are followed by the id of the plugin or the name
// of the server or API.
const (
	SourceBuiltin   = "builtin"
	SourceHost      = "host" // functions of the program that uses toolreg rpc
	SourceCommand   = "command"
	SourceComposite = "composite"
	PluginPrefix    = "plugin:"
	MCPPrefix       = "mcp:"
	APIPrefix       = "openapi:"
)

// Example is an example call of a tool.
type Example struct {
	Description string          `json:"description,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"`
}

// Definition is the part of a tool that list and schema show: plain data in the
// JSON format of `toolreg list`. Absent values are omitted. Registered tools have settled
// schemas: those that the source sent, byte for byte, unless something in them had to be
// settled.
type Definition struct {
	Name        string `json:"name"`                  // registered name, as calls use it
	DisplayName string `json:"displayName,omitempty"` // display name
	Description string `json:"description,omitempty"`
	// Source is builtin, command, composite, plugin:ID, mcp:SERVER or openapi:NAME.
	Source          string          `json:"source"`
	Server          string          `json:"server,omitempty"`     // MCP server or API
	ServerTool      string          `json:"serverTool,omitempty"` // the server's own name for the tool
	Plugin          string          `json:"plugin,omitempty"`     // id of the plugin
	Category        Category        `json:"category,omitempty"`
	Tags            []string        `json:"tags,omitempty"`
	Version         string          `json:"version,omitempty"`
	Author          string          `json:"author,omitempty"`
	Icon            string          `json:"icon,omitempty"`
	Optional        bool            `json:"optional,omitempty"`    // registered only if tools.allow names it
	Permissions     []string        `json:"permissions,omitempty"` // entries of the setting permissions that it needs
	Examples        []Example       `json:"examples,omitempty"`
	Aliases         []string        `json:"aliases,omitempty"`          // other names that calls may use
	Annotations     json.RawMessage `json:"annotations,omitempty"`      // the server's hints, as sent
	OutputMarkdown  bool            `json:"isOutputMarkdown,omitempty"` // its results are Markdown
	CanUpdateOutput bool            `json:"canUpdateOutput,omitempty"`  // it sends output while it runs
	InputSchema     json.RawMessage `json:"inputSchema,omitempty"`      // JSON Schema of its params
	OutputSchema    json.RawMessage `json:"outputSchema,omitempty"`     // JSON Schema of its structured results
	Provider        ProviderFields  `json:"provider,omitzero"`          // fields that only some providers declare
	// MCP has the fields that only MCP clients use, as the server sent them.
	MCP MCPFields `json:"mcp,omitzero"`
	// SentInput and SentOutput are schemas as the source sent them, if those above differ
	// because they were settled.
	SentInput, SentOutput json.RawMessage `json:"-"`
	// Given is the source's own name for the tool, if it is not a server's tool and is registered
	// under another name. A registry sets it.
	Given string `json:"-"`
	// Namesakes are the built-in tools that share a name with the tool. A registry sets them.
	Namesakes []Namesake `json:"-"`
	// Reshaped is set if an override changed the definition.
	Reshaped *Reshaped `json:"-"`
}

// AsSent returns the definition with its schemas as the source sent them, for listings and
// fingerprints.
func (d *Definition) AsSent() *Definition {
	if d.SentInput == nil && d.SentOutput == nil {
		return d
	}
	sent := *d
	if sent.SentInput != nil {
		sent.InputSchema = sent.SentInput
	}
	if sent.SentOutput != nil {
		sent.OutputSchema = sent.SentOutput
	}
	return &sent
}

// MCPFields are the fields of an MCP server's tool that are only used by MCP clients, as the server
// sent them.
type MCPFields struct {
	Title     string          `json:"title,omitempty"`
	Icons     json.RawMessage `json:"icons,omitempty"`
	Execution json.RawMessage `json:"execution,omitempty"`
	Meta      json.RawMessage `json:"_meta,omitempty"`
}

// IsMCP reports whether the tool comes from an MCP server.
func (d *Definition) IsMCP() bool { return strings.HasPrefix(d.Source, MCPPrefix) }

// OfServer reports whether the tool comes from an MCP server or an API of the settings. The same
// rules apply to the names, filters and trust of both.
func (d *Definition) OfServer() bool {
	_, ok := ServerOf(d.Source)
	return ok
}

// ServerOf returns the name of the MCP server or API that a source is; ok is false for other
// sources. No two of them have the same name in a run.
func ServerOf(source string) (server string, ok bool) {
	if server, ok = strings.CutPrefix(source, MCPPrefix); ok {
		return server, true
	}
	return strings.CutPrefix(source, APIPrefix)
}

// ServerLabel names the server or API of a tool for people, such as `server "github"`. It
// is "" for other tools.
func (d *Definition) ServerLabel() string {
	switch {
	case d.IsMCP():
		return fmt.Sprintf("server %q", d.Server)
	case d.OfServer():
		return fmt.Sprintf("API %q", d.Server)
	}
	return ""
}

// Title returns the title to declare to MCP clients. For a server's tool it is the
// server's title, which may be empty.
func (d *Definition) Title() string {
	if d.IsMCP() {
		return d.MCP.Title
	}
	return d.DisplayName
}

// Qualified returns the name under which a server's tool can always be called,
// server__tool made valid. It returns "" for other tools.
func (d *Definition) Qualified() string {
	if !d.OfServer() {
		return ""
	}
	return ValidName(d.Server + "__" + d.PlainName())
}

// IsClear reports whether the name server__tool of a server's tool is unambiguous: "a__b__c" could
// be tool b__c of server a or tool c of server a__b.
func (d *Definition) IsClear() bool {
	plain := d.PlainName()
	return !strings.Contains(d.Server, "__") && !strings.Contains(plain, "__") &&
		!strings.HasSuffix(d.Server, "_") && !strings.HasPrefix(plain, "_")
}

// TakesParams reports whether a call may have params: whether the input schema
// declares, requires or allows properties, or combines schemas. It returns false if
// there is no schema and true if the schema cannot be parsed.
func (d *Definition) TakesParams() bool {
	if len(d.InputSchema) == 0 {
		return false
	}
	var s map[string]json.RawMessage
	if json.Unmarshal(d.InputSchema, &s) != nil {
		return true
	}
	for keyword, value := range s {
		switch keyword {
		case "properties", "patternProperties", "required":
			if v := bytes.Trim(value, "{}[] \t\r\n"); len(v) > 0 && string(v) != "null" {
				return true
			}
		case "additionalProperties", "unevaluatedProperties":
			if string(value) != "false" {
				return true
			}
		case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef",
			"dependentSchemas", "dependentRequired", "propertyNames", "minProperties":
			return true
		}
	}
	return false
}

// Reshaped describes how an override changed a tool. The definition that contains
// it is the changed one.
type Reshaped struct {
	// Upstream is the definition as the source gave it, under the name that the tool
	// has without the override.
	Upstream Definition
	// Name is the tool's new name, without its server; "" if the override does not change
	// it.
	Name string
	// NameOfProject is set if a project's settings give the tool this name. Settings that allow
	// tools by name then do not apply to the name.
	NameOfProject bool
	// Hidden restricts the tool to the steps of composites.
	Hidden bool
	// Override is the entry in the settings, and Shown the same with secrets masked. Origin is its
	// file:line. Personal is set if it is in the user's own settings, which other users do not
	// have.
	Override, Shown json.RawMessage
	Origin          string
	Personal        bool
}

// Upstream returns the definition as the source gave it, under the name that the
// tool has without an override.
func (d *Definition) Upstream() *Definition {
	if d.Reshaped != nil {
		return &d.Reshaped.Upstream
	}
	return d
}

// Named returns the definition under the name that applies to settings which allow something:
// without a name that a project's override gave it.
func (d *Definition) Named() *Definition {
	if d.Reshaped != nil && d.Reshaped.NameOfProject {
		return &d.Reshaped.Upstream
	}
	return d
}

// IsRenamed reports whether an override gave the tool another name.
func (d *Definition) IsRenamed() bool { return d.Reshaped != nil && d.Reshaped.Name != "" }

// PlainName returns the name of a tool without its server: the name from an
// override, or else the server's.
func (d *Definition) PlainName() string {
	switch {
	case d.IsRenamed():
		return d.Reshaped.Name
	case d.OfServer():
		return d.ServerTool
	}
	return d.Name
}

// names returns name, under which a tool is registered, and all other names that find the tool.
func (d *Definition) names(name string) []string {
	out := append(make([]string, 0, 3+len(d.Aliases)), name)
	if d.OfServer() {
		raw := d.Server + "__" + d.PlainName()
		out = append(out, raw, ValidName(raw))
	}
	return append(out, d.Aliases...)
}

// OverrideNames returns the keys that an override of the tool can have.
func (d *Definition) OverrideNames() []string { return d.names(ValidName(d.Name)) }

// DeclaredOutputSchema returns the output schema for declarations to providers
// whose clients may not support one. It returns nil unless the settings enable it.
func (d *Definition) DeclaredOutputSchema() json.RawMessage {
	switch jsonx.KindOf(d.Provider.OutputSchema) {
	case jsonx.True:
		return d.OutputSchema
	case jsonx.Object:
		return d.Provider.OutputSchema
	}
	return nil
}

// MCPOutputSchema returns the output schema for declarations to MCP clients: the tool's own,
// unless the settings replace or omit it.
func (d *Definition) MCPOutputSchema() json.RawMessage {
	if jsonx.IsNull(d.Provider.OutputSchema) {
		return d.OutputSchema
	}
	return d.DeclaredOutputSchema()
}

// OriginalName returns the name that the source gave the tool.
func (d *Definition) OriginalName() string {
	if d.OfServer() {
		return d.ServerTool
	}
	return d.Upstream().Name
}

// ProviderFields are the fields that providers' APIs accept for a tool besides
// its name, description and schemas. They come from the settings and never from
// the source of a tool. Fields that are not set, or that a provider does not
// support, are not declared.
type ProviderFields struct {
	// DeferLoading is true if the model has to search for the tool instead of seeing
	// its declaration from the start, and false if it never has to.
	DeferLoading *bool `json:"deferLoading,omitempty"`
	// Strict requires calls to follow the schema exactly.
	Strict *bool `json:"strict,omitempty"`
	// InputExamples are examples of params, each a JSON object.
	InputExamples []json.RawMessage `json:"inputExamples,omitempty"`
	// CacheControl marks the end of a part of the request for the provider to cache.
	CacheControl *CacheControl `json:"cacheControl,omitempty"`
	// AllowedCallers lists the callers of the tool, in the provider's terms.
	AllowedCallers []string `json:"allowedCallers,omitempty"`
	// OutputSchema is true to declare the tool's own output schema, false never
	// to declare one, or the JSON Schema to declare instead.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// EagerInputStreaming says whether params are streamed while the model writes them.
	EagerInputStreaming *bool `json:"eagerInputStreaming,omitempty"`
	// Async says whether the model may go on before it has the result of a call.
	Async *bool `json:"async,omitempty"`
	// Behavior is BLOCKING or NON_BLOCKING, for Gemini's Live API.
	Behavior string `json:"behavior,omitempty"`
}

// CacheControl is a point up to which a provider caches a request. TTL is "5m",
// "1h" or, for the provider's default, "".
type CacheControl struct {
	TTL string `json:"ttl,omitempty"`
}

// Namesake is a built-in tool that shares a name with another tool. Settings that name the built-in
// tool apply to both, unless they allow something.
type Namesake struct {
	Name     string
	Aliases  []string
	Category Category
}

// has reports whether the built-in tool has a name, ignoring case.
func (n *Namesake) has(name string) bool {
	same := func(own string) bool { return strings.EqualFold(own, name) }
	return same(n.Name) || slices.ContainsFunc(n.Aliases, same)
}

// Bears returns the built-in tool whose name this other tool is registered under; nil if there is
// none.
func (d *Definition) Bears() *Namesake {
	for i := range d.Namesakes {
		if d.Namesakes[i].has(d.Name) {
			return &d.Namesakes[i]
		}
	}
	return nil
}

// Strictest returns the category, of two, that the policy's defaults treat more strictly.
func Strictest(a, b Category) Category {
	order := []Category{CategoryRead, CategoryNetwork, CategoryWrite, CategoryCommand}
	rank := func(c Category) int {
		if i := slices.Index(order, c); i >= 0 {
			return i
		}
		return len(order)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
