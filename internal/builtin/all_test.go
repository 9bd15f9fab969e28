package builtin

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

// definitions returns all tools, for a workspace that is never opened.
func definitions(t testing.TB) []registry.Tool {
	t.Helper()
	all, _, err := Source(Options{}).Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type inputSchema struct {
	Type       string `json:"type"`
	Properties map[string]struct {
		Type        any    `json:"type"`
		Description string `json:"description"`
	} `json:"properties"`
	Required   []string `json:"required"`
	Additional *bool    `json:"additionalProperties"`
}

// TestEveryTool checks the rules that apply to all tools.
func TestEveryTool(t *testing.T) {
	opts, _ := place(t, nil)
	source := Source(opts)
	all, diagnostics, err := source.Discover(t.Context())
	if err != nil || len(diagnostics) > 0 || source.Name() != "builtin" {
		t.Fatal(source.Name(), diagnostics, err)
	}
	for i, tool := range all {
		t.Run(tool.Name, func(t *testing.T) {
			if tool.Category != entries[i].category {
				t.Errorf("%s has category %s, but is listed with %s", tool.Name, tool.Category, entries[i].category)
			}
			if tool.Name != Names()[i] || tool.Source != "builtin" || tool.DisplayName == "" || tool.Icon == "" || !tool.Category.Valid() {
				t.Errorf("incomplete: %+v", tool.Definition)
			}
			if len(tool.Description) < 40 || strings.TrimSpace(tool.Description) != tool.Description {
				t.Errorf("description: %q", tool.Description)
			}
			if tool.Run == nil {
				t.Error("Run is nil")
			}
			if tool.Category != registry.CategoryRead && tool.Preview == nil {
				t.Error("a tool that changes something has no preview")
			}
			checkSchema(t, &tool)
		})
	}
}

func checkSchema(t *testing.T, tool *registry.Tool) {
	t.Helper()
	var s inputSchema
	if err := json.Unmarshal(tool.InputSchema, &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "object" || s.Additional == nil || *s.Additional {
		t.Error("the schema is not strict")
	}
	for name, p := range s.Properties {
		if p.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	v := registry.NewValidator(tool.InputSchema)
	validate := func(doc string) int {
		violations, err := v.Validate(t.Context(), json.RawMessage(doc))
		if err != nil {
			t.Fatalf("the schema does not compile: %v", err)
		}
		return len(violations)
	}
	for _, e := range tool.Examples {
		if validate(string(e.Params)) > 0 {
			t.Errorf("the example %s is invalid", e.Params)
		}
	}
	if (validate(`{}`) > 0) != (len(s.Required) > 0) {
		t.Errorf("validation of {} disagrees with required %v", s.Required)
	}
	if validate(`{"no such param":1}`) == 0 {
		t.Error("an unknown param is accepted")
	}
}

// The tools rely on their schemas for these.
func TestSchemasRefuse(t *testing.T) {
	opts, _ := place(t, nil)
	for name, all := range map[string][]string{
		"edit":       {`{"file_path":"f","edits":[]}`, `{"file_path":"f","old_string":"a","new_string":"b","expected_replacements":0}`},
		"write_file": {`{"file_path":"f"}`, `{"file_path":"f","Content":"x","content":"x"}`},
		"glob":       {`{}`, `{"pattern":""}`},
		"grep":       {`{}`, `{"pattern":""}`, `{"pattern":"a","Context":1}`},
		"process":    {`{}`, `{"action":"stop"}`},
		"todo_write": {`{}`, `{"todos":[{"id":"1","content":"a","status":"done"}]}`,
			`{"todos":[{"id":"1","content":"a","status":"pending","priority":"urgent"}]}`},
		"web_fetch": {`{"url":"http://a/","limit":0}`, `{"url":"http://a/","limit":1000001}`,
			`{"url":"http://a/","offset":-1}`, `{"url":"http://a/","format":"pdf"}`},
	} {
		tool := find(t, opts, name)
		v := registry.NewValidator(tool.InputSchema)
		for _, params := range all {
			if violations, err := v.Validate(t.Context(), json.RawMessage(params)); err != nil || len(violations) == 0 {
				t.Errorf("%s accepts %s: %v", name, params, err)
			}
		}
	}
}

// TestHostileParams calls every tool with malformed params, bypassing the
// schema: no tool may panic, and none may accept an unknown param.
func TestHostileParams(t *testing.T) {
	opts, _ := place(t, map[string]string{"a": "x"})
	for _, name := range Names() {
		tool := find(t, opts, name)
		for _, params := range []string{``, `null`, `[]`, `"x"`, `{`, `{"x":1}`, `{"path":5,"file_path":5,"pattern":5,"command":5,"patch":5}`, "\xff", `{} {}`} {
			c := tooltest.Call(params)
			if tool.Check != nil {
				_ = tool.Check(t.Context(), c)
			}
			if tool.Subject != nil {
				_, _ = tool.Subject(c)
			}
			if tool.Preview != nil {
				_, _ = tool.Preview(t.Context(), c)
			}
			if r, err := tool.Run(t.Context(), c); err == nil && !r.IsError && strings.Contains(params, `":`) {
				t.Errorf("%s ran with %s: %s", name, params, r.Text())
			}
		}
	}
}

func TestNamesAndAliases(t *testing.T) {
	names, canonical := Names(), Canonical()
	if len(tooltest.Sorted(slices.Clone(names))) != len(names) {
		t.Errorf("names repeat: %q", names)
	}
	for alias, want := range map[string]string{
		"read": "read_file", "ls": "list_directory", "search_file_content": "grep", "grep_search": "grep",
		"ReadFileTool": "read_file", "LSTool": "list_directory", "GlobTool": "glob", "GrepTool": "grep",
	} {
		if got := canonical(alias); got != want {
			t.Errorf("alias %s means %q", alias, got)
		}
	}
	for _, e := range entries {
		for _, name := range append([]string{e.name}, e.aliases...) {
			if got := canonical(name); got != e.name {
				t.Errorf("%s of %s means %s", name, e.name, got)
			}
		}
	}
}

// TestDefinitionsOpenNothing lists the tools of a workspace that does not
// exist.
func TestDefinitionsOpenNothing(t *testing.T) {
	source := Source(Options{Workspace: workspace.Options{Dir: filepath.Join(t.TempDir(), "gone")}})
	all, _, err := source.Discover(t.Context())
	if err != nil || len(all) != len(Names()) {
		t.Fatal(len(all), err)
	}
	if err := source.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedSourceRefuses(t *testing.T) {
	opts, _ := place(t, map[string]string{"a": "x"})
	for _, used := range []bool{false, true} {
		source := Source(opts)
		all, _, _ := source.Discover(t.Context())
		i := slices.IndexFunc(all, func(tool registry.Tool) bool { return tool.Name == "read_file" })
		if used {
			if r, err := all[i].Run(t.Context(), tooltest.Call(`{"file_path":"a"}`)); err != nil || r.Text() != "x" {
				t.Fatal(r, err)
			}
		}
		if err := source.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
		if r, err := all[i].Run(t.Context(), tooltest.Call(`{"file_path":"a"}`)); err == nil && !r.IsError || err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("used %v: %+v, %v", used, r, err)
		}
	}
}

// An error message quotes only a little of a param, however long it is, and a
// path that the system rejects creates nothing on disk.
func TestErrorsQuoteLongParamsBriefly(t *testing.T) {
	opts, dir := place(t, nil)
	long := strings.Repeat("a/", 2100) + "x"
	full := map[string]map[string]any{
		"write_file": {"content": "x"}, "edit": {"old_string": "", "new_string": "x"}, "glob": {"pattern": "*"}, "grep": {"pattern": "x"},
		"run_shell_command": {"command": "true"}, "process": {"action": "log"},
	}
	for _, tool := range definitions(t) {
		var in inputSchema
		if err := json.Unmarshal(tool.InputSchema, &in); err != nil {
			t.Fatal(err)
		}
		for name, property := range in.Properties {
			if property.Type != "string" || name == "content" || name == "new_string" || name == "action" || name == "command" || name == "description" || tool.Name == "web_fetch" {
				continue
			}
			params := map[string]any{}
			maps.Copy(params, full[tool.Name])
			params[name] = long
			given := tooltest.JSON(t, params)
			r, err := find(t, opts, tool.Name).Run(t.Context(), tooltest.Call(given))
			text := r.Text()
			if err != nil {
				text = err.Error()
			}
			if err == nil && !r.IsError && name != "pattern" && name != "include" || len(text) > 1000 {
				t.Errorf("%s, %s: %d bytes, %v: %.300s", tool.Name, name, len(text), err, text)
			}
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the workspace has %v, %v", names, err)
	}
}
