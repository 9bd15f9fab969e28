package builtin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

var update = flag.Bool("update", false, "rewrite docs/tools.md")

// TestDocumentationHoldsTheTools compares docs/tools.md with the definitions:
// the text between "<!-- tool NAME -->" and "<!-- end -->" is generated from them.
// -update rewrites it.
func TestDocumentationHoldsTheTools(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "tools.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, tool := range definitions(t) {
		documented[tool.Name] = describeTool(t, &tool)
	}
	block := regexp.MustCompile(`(?s)<!-- tool (\w+) -->\n.*?<!-- end -->`)
	var found []string
	want := block.ReplaceAllStringFunc(string(text), func(old string) string {
		name := block.FindStringSubmatch(old)[1]
		found = append(found, name)
		return fmt.Sprintf("<!-- tool %s -->\n%s<!-- end -->", name, documented[name])
	})
	if diff := cmp.Diff(Names(), found); diff != "" {
		t.Errorf("the tools of %s, in their order (-want +got):\n%s", path, diff)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not up to date, run go test ./internal/builtin -run Documentation -update (-want +got):\n%s", path, diff)
	}
	for _, preset := range Presets() {
		if !strings.Contains(want, "| `"+preset+"` |") {
			t.Errorf("%s does not mention the preset %s", path, preset)
		}
	}
}

// describeTool renders names, category and params of a tool in Markdown.
func describeTool(t *testing.T, tool *registry.Tool) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "Category %s", tool.Category)
	if len(tool.Aliases) > 0 {
		fmt.Fprintf(&b, "; also called `%s`", strings.Join(tool.Aliases, "`, `"))
	}
	if len(tool.Permissions) > 0 {
		fmt.Fprintf(&b, "; needs the permission %s", strings.Join(tool.Permissions, ", "))
	}
	b.WriteString(".\n\n")
	b.WriteString(describeParams(t, tool.InputSchema))
	return b.String()
}

func describeParams(t *testing.T, schema json.RawMessage) string {
	t.Helper()
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(s.Properties)) // in the schema's order
	if _, err := dec.Token(); err != nil || !dec.More() {
		return "No params.\n"
	}
	b.WriteString("| param | type | meaning |\n|---|---|---|\n")
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Type        string   `json:"type"`
			Description string   `json:"description"`
			Enum        []string `json:"enum"`
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		kind := p.Type
		if len(p.Enum) > 0 {
			kind = strings.Join(p.Enum, ", ")
		}
		if slices.Contains(s.Required, name.(string)) {
			kind += ", required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, kind, strings.ReplaceAll(p.Description, "|", `\|`))
	}
	return b.String()
}
