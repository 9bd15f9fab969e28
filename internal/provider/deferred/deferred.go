// Package deferred declares only a part of a large registry and lets the model find
// the rest. [Declare] decides which tools are declared within a budget of tokens.
// The others are declared as deferred if the provider can find such tools itself.
// Otherwise a model reaches them through three tools of this package: search_tools,
// describe_tools and call_tool.
//
// This package only decides and writes text. Package engine answers calls of the
// three tools in any later run, without knowing which tools were declared.
package deferred

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
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
		return registry.Definition{Name: names[name], DisplayName: display, Description: description,
			Source: registry.SourceBuiltin, Category: registry.CategoryRead, InputSchema: json.RawMessage(schema)}
	}
	return []registry.Definition{
		define(SearchTools, "Search tools",
			o.searchText()+" Returns the names, descriptions and params of the best matches, which "+
				names[CallTool]+" calls.",
			searchSchema),
		define(DescribeTools, "Describe tools",
			"Returns the descriptions and params of tools by their names, for tools that "+
				names[SearchTools]+" returned without params.",
			describeSchema),
		define(CallTool, "Call a tool", "Calls a tool that is not listed here. Find its name and params with "+
			names[SearchTools]+" first.", callSchema),
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

// Rest says that there are more tools than those shown, and where they come from.
func (o Overview) Rest(more int) string {
	return fmt.Sprintf("%s more; search and describe find them. All tools: %s.", text.Count(more, "tool"), o.listSources())
}

// searchText describes the tools that a search can find, so that a model knows
// about tools that it does not see.
func (o Overview) searchText() string {
	return fmt.Sprintf("Finds tools that are not listed here. There are %s: %s. Search before you conclude that there is no tool for a task.",
		text.Count(o.Tools, "tool"), o.listSources())
}

// maxListed is the maximum number of sources to name.
const maxListed = 60

// listSources lists the sources with their numbers of tools, servers last.
func (o Overview) listSources() string {
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

// Options are the options of [Declare]. Budget is the maximum number of tokens of
// declarations that a model sees before it searches.
type Options struct {
	All    bool // defer all tools that are not always declared, even if they fit
	Budget int
	// Always reports whether the settings exempt a tool from being deferred.
	Always func(*registry.Definition) bool
	// Client lets the client answer searches, if the provider supports this.
	Client   bool
	Overview Overview
}

// Result is the result of [Declare].
type Result struct {
	provider.Output
	Diagnostics []registry.Diagnostic
	Deferred    int // number of tools that a model sees only after a search; if 0, Output has all tools
	Tokens      int // estimated tokens that a model sees before it searches
}

// Declare encodes definitions in order and defers those beyond the budget. If all
// fit, the output is that of [provider.Format.Encode]. The output is deterministic.
func Declare(f provider.Format, defs []registry.Definition, encode provider.Options, o Options) Result {
	whole, diags := f.Encode(defs, encode)
	all := Result{Output: whole, Diagnostics: diags, Tokens: f.Tokens(whole.Data)}
	p := &plan{format: f, defs: defs, encode: encode, options: o, whole: whole, kept: map[string]bool{}}
	marked := p.keepAlways()
	if len(p.kept) == len(defs) || !o.All && !marked && all.Tokens <= o.Budget {
		return all
	}
	least := p.declare()
	if !o.All {
		p.fill(o.Budget - least.Tokens)
		least = p.declare()
	}
	if least.Tokens > o.Budget {
		least.Diagnostics = append(least.Diagnostics,
			registry.Diagnostic{Severity: registry.SeverityWarning, Code: "search_budget_exceeded",
				Message: fmt.Sprintf(
					"the tools that are always declared take about %d tokens, which exceeds search.budget (%d)",
					least.Tokens, o.Budget),
				Hint: "list fewer tools in search.always, or raise search.budget"})
	}
	return least
}

// plan is the selection of the tools to declare.
type plan struct {
	format  provider.Format
	defs    []registry.Definition
	encode  provider.Options
	options Options
	whole   provider.Output // declarations of all tools, without deferring
	kept    map[string]bool
}

// keepAlways keeps the tools that the settings exempt. It reports whether the
// settings require other tools to be deferred.
func (p *plan) keepAlways() (marked bool) {
	for i := range p.defs {
		d := &p.defs[i]
		switch said := d.Provider.DeferLoading; {
		case said != nil && *said:
			marked = true
		case said != nil, p.options.Always != nil && p.options.Always(d):
			p.kept[d.Name] = true
		}
	}
	return marked
}

// fill keeps further tools, in order, until one does not fit into the remaining
// room in tokens.
func (p *plan) fill(room int) {
	at := make(map[string]*registry.Definition, len(p.defs))
	for i := range p.defs {
		at[p.defs[i].Name] = &p.defs[i]
	}
	for _, d := range p.whole.Declarations {
		if said := at[d.Tool].Provider.DeferLoading; p.kept[d.Tool] || said != nil && *said {
			continue
		}
		if room -= p.format.Tokens(d.Data) + 1; room < 0 { // 1 for a separator
			return
		}
		p.kept[d.Tool] = true
	}
}

// declare encodes the kept tools and the means by which the model can find the
// others.
func (p *plan) declare() Result {
	encode, defs := p.encode, p.defs
	if p.format.Defers() {
		encode.Defer = p.deferral()
	}
	if encode.Defer.Client != nil || !p.format.Defers() {
		defs = slices.DeleteFunc(slices.Clone(defs), func(d registry.Definition) bool { return !p.kept[d.Name] })
	}
	if !p.format.Defers() {
		defs = append(defs, p.options.Overview.Definitions(p.taken())...)
	}
	out, diags := p.format.Encode(defs, encode)
	seen := p.format.Tokens(out.Data)
	for _, d := range out.Declarations {
		if d.Deferred {
			seen -= p.format.Tokens(d.Data)
		}
	}
	return Result{Output: out, Diagnostics: diags, Deferred: len(p.defs) - len(p.kept), Tokens: seen}
}

// deferral returns the options for the provider's own search.
func (p *plan) deferral() provider.Deferral {
	d := provider.Deferral{Search: true}
	if p.options.Client && p.format.Name == "openai-responses" {
		d.Client = &registry.Definition{Description: p.options.Overview.searchText(),
			InputSchema: json.RawMessage(searchSchema)}
		return d
	}
	d.Tools = map[string]bool{}
	for i := range p.defs {
		if name := p.defs[i].Name; !p.kept[name] {
			d.Tools[name] = true
		}
	}
	names := p.named(d.Tools)
	d.Namespaces = p.options.Overview.namespaces(names)
	for source := range names {
		if d.Namespaces[source] == "" { // the overview has no such source
			d.Namespaces[source] = Source{Name: source}.words()
		}
	}
	return d
}

func (p *plan) named(tools map[string]bool) map[string][]string {
	source := make(map[string]string, len(p.defs))
	for i := range p.defs {
		source[p.defs[i].Name] = p.defs[i].Source
	}
	out := map[string][]string{}
	for _, d := range p.whole.Declarations {
		if tools[d.Tool] {
			out[source[d.Tool]] = append(out[source[d.Tool]], d.Name)
		}
	}
	return out
}

// taken returns a function that reports whether a name is the registered or
// declared name of a tool in the registry.
func (p *plan) taken() func(string) bool {
	names := slices.Clone(p.encode.Registered)
	for i := range p.defs {
		names = append(names, p.defs[i].Name)
	}
	return Taken(p.format.Name, names)
}

// Taken returns a function that reports whether a name is the registered name of a
// tool, or its declared name in a format.
func Taken(format string, registered []string) func(string) bool {
	declared, _ := provider.Names(format, registered) // nil for an unknown format
	return func(name string) bool { return declared[name] != "" || slices.Contains(registered, name) }
}

// Limits on the descriptions of namespaces, in bytes: for each, and for all
// together.
const (
	maxDescription  = 400
	minDescription  = 80
	maxDescriptions = 16_000
)

// namespaces returns descriptions of sources for a model that does not see their
// tools. They consist of the description in the settings and names of tools.
func (o Overview) namespaces(names map[string][]string) map[string]string {
	limit := max(minDescription, min(maxDescription, maxDescriptions/max(len(o.Sources), 1)))
	out := make(map[string]string, len(o.Sources))
	for _, s := range o.Sources {
		description := text.Clip(cmp.Or(strings.TrimRight(text.FirstSentence(s.Description), "."), s.words()), limit)
		for i, name := range names[s.Name] {
			sep := ", "
			if i == 0 {
				sep = ": "
			}
			if len(description)+len(sep)+len(name) > limit {
				description += fmt.Sprintf("%s%d more", sep, len(names[s.Name])-i)
				break
			}
			description += sep + name
		}
		out[s.Name] = description
	}
	return out
}

// Found encodes the tools that a search found, for the answer to a search that the
// provider leaves to the client.
func (o Overview) Found(f provider.Format, defs []registry.Definition, registered []string) []json.RawMessage {
	d := provider.Deferral{Tools: map[string]bool{}, Namespaces: o.namespaces(nil)}
	for i := range defs {
		d.Tools[defs[i].Name] = true
	}
	out, _ := f.Encode(defs, provider.Options{Registered: registered, Defer: d})
	tools, _ := jsonx.Elements(out.Data) // the encoder's output is a list
	return tools
}
