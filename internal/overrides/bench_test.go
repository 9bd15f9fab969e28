package overrides

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

type listing []registry.Tool

func (*listing) Name() string { return "mcp:s" }

func (l *listing) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	return *l, nil, nil
}

// BenchmarkList builds a registry of 500 tools and encodes the output of list,
// with and without ten overrides.
func BenchmarkList(b *testing.B) {
	var tools listing
	for i := range 500 {
		name := fmt.Sprintf("tool_%d", i)
		tools = append(tools, registry.Tool{Definition: registry.Definition{Name: name, DisplayName: name, Source: "mcp:s", Server: "s", ServerTool: name,
			Description: strings.Repeat("Does something useful with a repository. ", 8),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"owner":{"type":"string","description":"Repository owner"},"repo":{"type":"string","description":"Repository name"},"limit":{"type":"integer","minimum":1,"maximum":100},"state":{"type":"string","enum":["open","closed","all"]}},"required":["owner","repo"],"$schema":"http://json-schema.org/draft-07/schema#"}`)}})
	}
	var yaml strings.Builder
	yaml.WriteString("overrides:\n")
	for i := range 10 {
		fmt.Fprintf(&yaml, "  tool_%d: {name: other_%d, description: Less., params: {owner: {const: me}, repo: {name: repository}, limit: {default: 10}, state: {enum: [open, all]}}}\n", 50*i, i)
	}
	set := newSet(b, yaml.String())
	for _, bb := range []struct {
		name string
		opts registry.Options
	}{{"none", registry.Options{}}, {"ten", registry.Options{Overrides: set}}} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				reg := registry.NewLoader(bb.opts).Load(b.Context(), []registry.Source{&tools}, false)
				for _, t := range reg.Sorted() {
					if _, err := json.Marshal(struct {
						*registry.Definition
						Fingerprint string
					}{&t.Definition, t.Fingerprint()}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkReshape applies an override to one tool.
func BenchmarkReshape(b *testing.B) {
	r := newRecorder(flat)
	for name, yaml := range map[string]string{
		"plain":    `overrides: {x: {name: y, params: {repo: {const: me}, title: {name: headline}, mode: {enum: [fast]}}}}`,
		"compiled": `overrides: {x: {params: {limit: {default: 10}}}}`,
	} {
		set := newSet(b, yaml)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				set.Reshape(b.Context(), &r.Tool, []string{"x"})
			}
		})
	}
}
