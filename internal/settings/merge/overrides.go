package merge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/layers"
)

const overridesKey = "overrides"

// addsTo reports whether an entry of a setting adds to an earlier one instead of replacing it: a
// project takes nothing away from the overrides of the person and of the system.
func addsTo(setting string, was, now Named) bool {
	return setting == overridesKey && now.Origin.Scope == layers.ScopeProject && was.Origin.Scope < layers.ScopeProject
}

// withAdded returns an override with what a project's entry of the same name adds to it: the fields
// that it does not have itself. The values of an enum are those that both have. ignored are the
// JSON pointers of the fields of the project's entry that have no effect; "" is all of it.
func withAdded(own, project Named) (out Named, ignored []string) {
	out = Named{Name: own.Name, Origin: own.Origin, Value: own.Value.Clone(), Own: own.Value}
	if own.Value.Get("hidden").Is(jsonx.True) {
		return own, []string{""}
	}
	kept := jsonx.NewObject()
	for _, f := range project.Value.Members {
		switch has := out.Value.Get(f.Name); {
		case f.Name == "params" && has.Is(jsonx.Object):
			var params *jsonx.Value
			params, ignored = addParams(has, f.Value, ignored)
			kept.Members = append(kept.Members, jsonx.Member{Name: f.Name, Pos: f.Pos, Value: params})
		case has != nil:
			ignored = append(ignored, "/"+f.Name)
		default:
			out.Value.Members, kept.Members = append(out.Value.Members, f), append(kept.Members, f)
		}
	}
	out.Added = &Named{Name: project.Name, Origin: project.Origin, Value: kept}
	return out, ignored
}

// addParams adds to the params of an override those of a project's. It returns what counts of
// the latter, and appends the pointers of the rest to ignored.
func addParams(own, project *jsonx.Value, ignored []string) (kept *jsonx.Value, _ []string) {
	kept = jsonx.NewObject()
	for _, p := range project.Members {
		pointer, has := "/params/"+jsonx.EscapeToken(p.Name), own.Get(p.Name)
		switch {
		case has == nil:
			own.Members, kept.Members = append(own.Members, p), append(kept.Members, p)
			continue
		case has.Get("const") != nil || has.Get("hidden").Is(jsonx.True):
			ignored = append(ignored, pointer)
			continue
		}
		added := jsonx.NewObject()
		for _, f := range p.Value.Members {
			if f = addField(has, f); f.Value == nil {
				ignored = append(ignored, pointer+"/"+jsonx.EscapeToken(f.Name))
				continue
			}
			has.Set(f.Name, f.Value)
			added.Members = append(added.Members, f)
		}
		kept.Members = append(kept.Members, jsonx.Member{Name: p.Name, Pos: p.Pos, Value: added})
	}
	return kept, ignored
}

// addField returns what a project's field adds to the settings of one param; its Value is nil if
// it adds nothing.
func addField(own *jsonx.Value, f jsonx.Member) jsonx.Member {
	has := own.Get(f.Name)
	switch {
	case f.Name == "enum" && has.Is(jsonx.Array) && f.Value.Is(jsonx.Array):
		both := *f.Value
		both.Items = slices.DeleteFunc(slices.Clone(f.Value.Items),
			func(item *jsonx.Value) bool { return !listHas(has, item) })
		if f.Value = &both; len(both.Items) == 0 {
			f.Value = nil
		}
	case has != nil, f.Name == "const" && (own.Get("default") != nil || own.Get("name") != nil),
		f.Name == "hidden" && own.Get("name") != nil, f.Name == "name" && own.Get("hidden") != nil:
		f.Value = nil
	}
	return f
}

// listHas reports whether a list has a value.
func listHas(list, value *jsonx.Value) bool {
	text := jsonx.Canonical(value.JSON())
	return slices.ContainsFunc(list.Items, func(item *jsonx.Value) bool { return jsonx.Canonical(item.JSON()) == text })
}

// IgnoredOverrides reports what has no effect in the project's overrides, because earlier scopes
// have an override of the same name.
func (m *Merged) IgnoredOverrides() []registry.Diagnostic {
	var out []registry.Diagnostic
	m.each(overridesKey, func(was, now Named) {
		if !addsTo(overridesKey, was, now) {
			return
		}
		_, ignored := withAdded(was, now)
		for _, pointer := range ignored {
			out = append(out, registry.Diagnostic{Severity: registry.SeverityWarning, Code: "override_ignored",
				Message: fmt.Sprintf(
					"%s: overrides.%s%s is ignored, because %s overrides it and a project can only add to that",
					now.At(pointer), now.Name, strings.ReplaceAll(pointer, "/", "."), was.At(pointer))})
		}
	})
	return out
}
