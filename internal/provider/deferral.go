package provider

import (
	"maps"
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

// Deferral says which tools are declared as deferred, for a provider that finds
// them when a model searches. It has an effect only in formats for which
// [Format.Defers] is true. The zero value defers nothing.
type Deferral struct {
	// Tools are the registered names of the deferred tools.
	Tools map[string]bool
	// Namespaces are descriptions of the sources of deferred tools, by source. The
	// format openai-responses groups tools in namespaces: until it searches, a model
	// sees only the name and description of a namespace.
	Namespaces map[string]string
	// Search declares the provider's search tool.
	Search bool
	// Client, if not nil, declares this search instead, which the client answers
	// (openai-responses).
	Client *registry.Definition
}

// Defers reports whether the provider accepts deferred tools and finds them
// itself.
func (f Format) Defers() bool { return f.search != nil }

func (e *encoder) defers(def *registry.Definition) bool { return e.opts.Defer.Tools[def.Name] }

// deferral returns the definitions in the order of declaration, with the deferred
// ones marked. The tools of a namespace are adjacent, at the position of the first
// one.
func (e *encoder) deferral(defs []registry.Definition) []registry.Definition {
	if len(e.opts.Defer.Tools) == 0 {
		return defs
	}
	yes := true
	marked := slices.Clone(defs)
	for i := range marked {
		if e.defers(&marked[i]) {
			marked[i].Provider.DeferLoading = &yes
		}
	}
	if !e.format.namespaces {
		return marked
	}
	e.namespaces = e.namespaceNames()
	out := make([]registry.Definition, 0, len(marked))
	done := map[string]bool{}
	for i := range marked {
		d := &marked[i]
		switch source := d.Source; {
		case !e.defers(d):
			out = append(out, *d)
		case !done[source]:
			done[source] = true
			for j := i; j < len(marked); j++ {
				if marked[j].Source == source && e.defers(&marked[j]) {
					out = append(out, marked[j])
				}
			}
		}
	}
	return out
}

// namespaceNames returns the name of each source's namespace: a server's own
// name if no other source has it.
func (e *encoder) namespaceNames() map[string]string {
	var names []string
	sources := slices.Sorted(maps.Keys(e.opts.Defer.Namespaces))
	for _, source := range sources {
		name, ok := registry.ServerOf(source)
		if !ok || e.opts.Defer.Namespaces[name] != "" {
			name = source
		}
		names = append(names, name)
	}
	out := make(map[string]string, len(sources))
	for i, name := range e.format.rule.assign(names) {
		out[sources[i]] = name
	}
	return out
}

// enter closes the open namespace and opens the one of a tool, if they differ. It
// also writes the separator before the tool, if one is needed.
func (e *encoder) enter(t *tool, between string, first bool) {
	wanted := ""
	if e.namespaces != nil && e.defers(t.def) {
		wanted = t.def.Source
	}
	if wanted != e.namespace {
		e.leaveNamespace()
		if !first {
			e.raw(between)
		}
		if wanted != "" {
			e.raw(`{"type":"namespace","name":`)
			e.string(e.namespaces[wanted])
			e.raw(`,"description":`)
			e.string(e.opts.Defer.Namespaces[wanted])
			e.raw(`,"tools":[`)
			e.namespace = wanted
		}
		return
	}
	if !first {
		e.raw(between)
	}
}

func (e *encoder) leaveNamespace() {
	if e.namespace != "" {
		e.raw("]}")
	}
	e.namespace = ""
}

// searchTool writes the provider's search tool.
func (e *encoder) searchTool(between string, first bool) {
	e.leaveNamespace()
	if !e.opts.Defer.Search {
		return
	}
	if !first {
		e.raw(between)
	}
	e.format.search(e)
}

// anthropicSearch declares the search for words. Anthropic's other search expects
// regular expressions.
func anthropicSearch(e *encoder) {
	e.raw(`{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}`)
}

func responsesSearch(e *encoder) {
	client := e.opts.Defer.Client
	if client == nil {
		e.raw(`{"type":"tool_search"}`)
		return
	}
	e.raw(`{"type":"tool_search","execution":"client","description":`)
	e.string(client.Description)
	e.raw(`,"parameters":`)
	e.raw(string(client.InputSchema))
	e.raw("}")
}
