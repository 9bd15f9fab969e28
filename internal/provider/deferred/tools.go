package deferred

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// Names of the tools with which a model reaches tools that are not declared.
const (
	SearchTools   = "search_tools"
	DescribeTools = "describe_tools"
	CallTool      = "call_tool"
)

// prefix is added to the name of one of these tools if a tool of the registry
// has that name.
const prefix = "toolreg_"

// DefaultFound is the number of tools that a search returns by default.
const DefaultFound = 5

// Kind returns which of the three tools a name refers to, or "". The name must not
// belong to a tool of the registry.
func Kind(name string) string {
	for strings.HasPrefix(name, prefix) {
		name = name[len(prefix):]
	}
	switch name {
	case SearchTools, DescribeTools, CallTool:
		return name
	}
	return ""
}

// Overview describes the sources that can be searched.
type Overview struct {
	Tools   int
	Sources []Source // the sources that have tools, in registry order
}

// Source is a source of tools with its description.
type Source struct {
	Name        string // as in [registry.Definition]
	Description string // description of a server in the settings; may be empty
	Tools       int
}

// Definitions returns the three tools, under names that are not taken.
func (o Overview) Definitions(taken func(name string) bool) []registry.Definition {
	names := map[string]string{}
	for _, name := range []string{SearchTools, DescribeTools, CallTool} {
		free := name
		for taken(free) {
			free = prefix + free
		}
		names[name] = free
	}
	define := func(name, display, description, schema string) registry.Definition {
		return registry.Definition{Name: names[name], DisplayName: display, Description: description, Source: registry.SourceBuiltin,
			Category: registry.CategoryRead, InputSchema: json.RawMessage(schema)}
	}
	return []registry.Definition{
		define(SearchTools, "Search tools", o.searchText()+" Returns the names, descriptions and params of the best matches, which "+names[CallTool]+" calls.", searchSchema),
		define(DescribeTools, "Describe tools", "Returns the descriptions and params of tools by their names, for tools that "+names[SearchTools]+" returned without params.", describeSchema),
		define(CallTool, "Call a tool", "Calls a tool that is not listed here. Find its name and params with "+names[SearchTools]+" first.", callSchema),
	}
}

// searchSchema is the input schema of search_tools, and of a provider's search
// that the client answers.
const searchSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"What the tool should do, in a few words, such as \"create an issue\"","minLength":1,"maxLength":10000},` +
	`"limit":{"type":"integer","description":"How many tools to return: 1 to 20, 5 by default","minimum":1,"maximum":20}},` +
	`"required":["query"],"additionalProperties":false}`

const describeSchema = `{"type":"object","properties":{` +
	`"names":{"type":"array","items":{"type":"string"},"description":"Names of tools, 20 at most","minItems":1,"maxItems":20}},` +
	`"required":["names"],"additionalProperties":false}`

const callSchema = `{"type":"object","properties":{` +
	`"name":{"type":"string","description":"Name of the tool","minLength":1},` +
	`"params":{"type":"object","description":"Params of the tool, as an object that matches its schema"}},` +
	`"required":["name"],"additionalProperties":false}`

// clientSearch returns the definition of a search that the client answers.
func (o Overview) clientSearch() *registry.Definition {
	return &registry.Definition{Description: o.searchText(), InputSchema: json.RawMessage(searchSchema)}
}

// Rest says that there are more tools than those shown, and where they come from.
func (o Overview) Rest(more int) string {
	return fmt.Sprintf("%s more; search and describe find them. All tools: %s.", counted(more), o.list())
}

// searchText describes the tools that a search can find, so that a model knows
// about tools that it does not see.
func (o Overview) searchText() string {
	return fmt.Sprintf("Finds tools that are not listed here. There are %s: %s. Search before you conclude that there is no tool for a task.",
		counted(o.Tools), o.list())
}

// maxListed is the maximum number of sources to name.
const maxListed = 60

// list lists the sources with their numbers of tools, servers last.
func (o Overview) list() string {
	var parts, servers []string
	more := 0
	for i, s := range o.Sources {
		switch name, ok := strings.CutPrefix(s.Name, registry.MCPPrefix); {
		case i >= maxListed:
			more++
		case ok:
			servers = append(servers, fmt.Sprintf("%s (%d)", name, s.Tools))
		default:
			parts = append(parts, fmt.Sprintf("%s (%d)", s.words(), s.Tools))
		}
	}
	if len(servers) > 0 {
		parts = append(parts, "MCP servers "+strings.Join(servers, ", "))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more sources", more))
	}
	return strings.Join(parts, ", ")
}

// words describes a source.
func (s Source) words() string {
	kind, name, _ := strings.Cut(s.Name, ":")
	switch {
	case kind+":" == registry.MCPPrefix:
		return "MCP server " + name
	case kind+":" == registry.APIPrefix:
		return "API " + name
	case kind+":" == registry.PluginPrefix:
		return "plugin " + name
	case kind == registry.SourceCommand:
		return "discovery command"
	case kind == registry.SourceBuiltin:
		return "built-in"
	}
	return kind
}

func counted(tools int) string {
	if tools == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", tools)
}
