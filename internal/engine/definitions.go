package engine

import (
	"github.com/toolreg/toolreg/internal/registry"
)

// Definitions returns the definitions of tools under names that select exactly
// these versions.
func Definitions(reg *registry.Registry, tools []*registry.Tool) []registry.Definition {
	out := make([]registry.Definition, len(tools))
	for i, t := range tools {
		out[i] = Definition(reg, t)
	}
	return out
}

// AllDefinitions returns the definitions of all versions of all tools of the registry.
func AllDefinitions(reg *registry.Registry) []registry.Definition {
	var tools []*registry.Tool
	for _, t := range reg.Tools() {
		tools = append(tools, reg.Versions(t.Name)...)
	}
	return Definitions(reg, tools)
}

// Names returns the names of all definitions of a registry and of the tools
// that settings exclude from it. The declared names depend on all of them, so
// that a tool has the same name in runs with different flags.
func Names(reg *registry.Registry) []string {
	var out []string
	for _, d := range AllDefinitions(reg) {
		out = append(out, d.Name)
	}
	for _, h := range reg.Hidden() {
		out = append(out, registry.ValidName(h.Name))
	}
	return out
}

// Definition returns a tool's definition under the name that selects exactly
// this version.
func Definition(reg *registry.Registry, t *registry.Tool) registry.Definition {
	d := t.Definition
	if newest, err := reg.Lookup(t.Name); err == nil && newest != t && t.Version != "" {
		d.Name = t.Name + "@" + t.Version
	}
	return d
}

// Found is a tool with the registry in which it was found, which may have only
// some of the tools.
type Found struct {
	Registry *registry.Registry
	Tool     *registry.Tool
	reach    *reach // nil if Tool belongs to Registry
}

// reach says which one of the three tools, through which a model reaches tools that are not declared,
// a found tool is.
type reach struct {
	kind     string // such as deferred.SearchTools
	format   string // format of the names that the model knows; "" stands for those of the registry
	offered  []*registry.Tool
	names    map[string]string // names of the three tools, by kind
	declared map[string]string // declared names, by name; nil if they are the same
}

// nameOf returns the name by which the model knows a tool.
func (r *reach) nameOf(t *registry.Tool) string {
	if name := r.declared[t.Name]; name != "" {
		return name
	}
	return t.Name
}

// FoundIn returns tools of a registry as if they had been looked up in it.
func FoundIn(reg *registry.Registry, tools []*registry.Tool) []Found {
	out := make([]Found, len(tools))
	for i, t := range tools {
		out[i] = Found{Registry: reg, Tool: t}
	}
	return out
}
