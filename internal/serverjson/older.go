package serverjson

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// modernize rewrites a description of an earlier schema as one of the present schema: names with
// underscores, the names that changed, other words for a transport, arguments that are strings, and
// numbers and booleans where a value is text. What has the present form is not changed.
func modernize(s *jsonx.Value) {
	camel(s)
	if s.Get("version") == nil {
		if v := s.Get("versionDetail").Get("version"); v != nil {
			s.Set("version", v)
		}
	}
	for _, p := range itemsOf(s, "packages") {
		rename(p, "registryName", "registryType")
		rename(p, "name", "identifier")
		if p.Get("registryType").IsText("docker") {
			p.Set("registryType", jsonx.NewString("oci"))
		}
		for _, list := range []string{"packageArguments", "runtimeArguments"} {
			for i, arg := range p.Get(list).Elements() {
				if arg.Is(jsonx.String) {
					p.Get(list).Items[i] = jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString("positional")),
						jsonx.NewMember("value", arg))
				}
			}
			valuesAsText(p.Get(list))
		}
		valuesAsText(p.Get("environmentVariables"))
		modernTransport(p.Get("transport"))
	}
	for _, r := range itemsOf(s, "remotes") {
		modernTransport(r)
	}
}

func modernTransport(t *jsonx.Value) {
	rename(t, "transportType", "type")
	switch strings.ToLower(t.Get("type").Text()) {
	case "http", "streamable", "streamablehttp", "streamable_http":
		t.Set("type", jsonx.NewString("streamable-http"))
	}
	valuesAsText(t.Get("headers"))
	valuesAsText(t.Get("variables"))
}

// camel renames all members whose names have underscores. Names of variables, which are not
// names of fields, stay.
func camel(v *jsonx.Value) {
	for _, m := range v.Fields() {
		if m.Name == "variables" && m.Value.Is(jsonx.Object) {
			for _, variable := range m.Value.Members {
				camel(variable.Value)
			}
			continue
		}
		if m.Name != "_meta" {
			camel(m.Value)
		}
		if words := strings.Split(m.Name, "_"); len(words) > 1 && words[0] != "" {
			for i, word := range words[1:] {
				if word != "" {
					words[i+1] = strings.ToUpper(word[:1]) + word[1:]
				}
			}
			rename(v, m.Name, strings.Join(words, ""))
		}
	}
	for _, item := range v.Elements() {
		camel(item)
	}
}

// valuesAsText writes the numbers and booleans of values as text, in a list of values or an
// object with a value for each name.
func valuesAsText(values *jsonx.Value) {
	all := slices.Clone(values.Elements())
	for _, m := range values.Fields() {
		all = append(all, m.Value)
	}
	for _, v := range all {
		if !v.Is(jsonx.Object) {
			continue
		}
		for _, name := range []string{"value", "default", "placeholder"} {
			asText(v.Get(name))
		}
		for _, choice := range v.Get("choices").Elements() {
			asText(choice)
		}
		valuesAsText(v.Get("variables"))
	}
}

func asText(v *jsonx.Value) {
	if v.Is(jsonx.Number) || v.Is(jsonx.True) || v.Is(jsonx.False) {
		*v = *jsonx.NewString(string(v.JSON()))
	}
}

func itemsOf(v *jsonx.Value, name string) []*jsonx.Value {
	return slices.DeleteFunc(slices.Clone(v.Get(name).Elements()),
		func(item *jsonx.Value) bool { return !item.Is(jsonx.Object) })
}

// rename renames a member, unless the object has one of the new name.
func rename(v *jsonx.Value, from, to string) {
	if v.Is(jsonx.Object) && v.Get(from) != nil && v.Get(to) == nil {
		v.Rename(from, to)
	}
}
