package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

func stateDir(t testing.TB) *state.Dir {
	t.Helper()
	dir, err := state.OpenDir(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// clock returns times one second apart, so that the order of approvals is certain.
func clock() func() time.Time {
	n := time.Unix(1_700_000_000, 0)
	return func() time.Time { n = n.Add(time.Second); return n }
}

func fetchTool(urls ...string) *registry.Tool {
	return builtinTool("web_fetch", registry.CategoryNetwork, registry.Subject{URLs: urls})
}

// todoTool writes no file in the workspace, so it has no Subject.
func todoTool() *registry.Tool {
	t := builtinTool("todo_write", "write", registry.Subject{})
	t.Subject = nil
	return t
}

func TestApprovalCovers(t *testing.T) {
	tests := []struct {
		name  string
		given *registry.Tool
		scope Scope
		asked *registry.Tool
		want  Decision
	}{
		{"the tool", mcpTool("s", "t", "t"), Scope{Kind: ScopeTool}, mcpTool("s", "t", "t"), Allow},
		{"the tool under its other name", mcpTool("s", "t", "t"), Scope{Kind: ScopeTool}, mcpTool("s", "t", "s__t"), Allow},
		{"not another tool", mcpTool("s", "t", "t"), Scope{Kind: ScopeTool}, mcpTool("s", "u", "u"), Ask},
		{"not another server", mcpTool("s", "t", "t"), Scope{Kind: ScopeTool}, mcpTool("r", "t", "t"), Ask},
		{"not in another case", mcpTool("S", "t", "t"), Scope{Kind: ScopeServer}, mcpTool("s", "t", "t"), Ask},
		{"the server", mcpTool("s", "t", "t"), Scope{Kind: ScopeServer}, mcpTool("s", "u", "u"), Allow},
		{"not a new tool", mcpTool("s", "t", "t"), Scope{Kind: ScopeServer}, mcpTool("s", "new", "new"), Ask},
		{"the command", shellTool("make all"), Scope{Kind: ScopeCommand, Values: []string{"make"}}, shellTool("make clean && make"), Allow},
		{"not another command", shellTool("make"), Scope{Kind: ScopeCommand, Values: []string{"make"}}, shellTool("make; go build"), Ask},
		{"the subcommand", shellTool("git status"), Scope{Kind: ScopeCommand, Values: []string{"git status"}}, shellTool("git status --short && git status"), Allow},
		{"not another subcommand", shellTool("git status"), Scope{Kind: ScopeCommand, Values: []string{"git status"}}, shellTool("git push"), Ask},
		{"not a whole program with subcommands", shellTool("git status"), Scope{Kind: ScopeCommand, Values: []string{"git"}}, shellTool("git status"), Ask},
		{"not with a variable", shellTool("make"), Scope{Kind: ScopeCommand, Values: []string{"make"}}, shellTool("CC=id make"), Ask},
		{"not in a wrapper", shellTool("make"), Scope{Kind: ScopeCommand, Values: []string{"make"}}, shellTool("env -i make"), Ask},
		{"not another path", shellTool("make"), Scope{Kind: ScopeCommand, Values: []string{"make"}}, shellTool("./make"), Ask},
		{"the host", fetchTool("https://a.org/x"), Scope{Kind: ScopeHost, Values: []string{"a.org"}}, fetchTool("https://A.org/y"), Allow},
		{"not another host", fetchTool("https://a.org"), Scope{Kind: ScopeHost, Values: []string{"a.org"}}, fetchTool("https://a.org.evil"), Ask},
		{"not the tool with the name of a host", fetchTool("https://web_fetch/x"), Scope{Kind: ScopeHost, Values: []string{"web_fetch"}}, fetchTool("https://b.org"), Ask},
		{"every host needs an approval", fetchTool("https://a.org"), Scope{Kind: ScopeHost, Values: []string{"a.org"}}, fetchTool("https://a.org", "https://b.org"), Ask},
		{"not without encryption", fetchTool("https://a.org"), Scope{Kind: ScopeHost, Values: []string{"a.org"}}, fetchTool("http://a.org"), Ask},
		{"without encryption", fetchTool("http://a.org"), Scope{Kind: ScopeHost, Values: []string{"http://a.org"}}, fetchTool("http://a.org/x"), Allow},
		{"not another port", fetchTool("https://a.org"), Scope{Kind: ScopeHost, Values: []string{"a.org"}}, fetchTool("https://a.org:8443"), Ask},
		{"all edits", pathTool("edit", "write", "a"), Scope{Kind: ScopeEdits}, pathTool("write_file", "write", "b"), Allow},
		{"not a tool that writes no file", pathTool("edit", "write", "a"), Scope{Kind: ScopeEdits}, todoTool(), Ask},
		{"such a tool does not cover edits", todoTool(), Scope{Kind: ScopeTool}, pathTool("edit", "write", "a"), Ask},
		{"not edits outside", pathTool("edit", "write", "a"), Scope{Kind: ScopeEdits}, pathTool("write_file", "write", "../b"), Ask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := &Approvals{Dir: stateDir(t), Project: "/p", Siblings: func(source string) []*registry.Tool {
				if source == registry.SourceBuiltin {
					return []*registry.Tool{pathTool("edit", "write"), pathTool("write_file", "write")}
				}
				return []*registry.Tool{mcpTool("s", "t", "t"), mcpTool("s", "u", "u")}
			}}
			p := Policy{Approvals: a}
			if v := p.Decide(t.Context(), tt.asked, registry.Call{}); v.Decision != Ask {
				t.Fatalf("before: %+v", v)
			}
			if err := a.Remember(t.Context(), tt.given, tt.scope); err != nil {
				t.Fatal(err)
			}
			v := p.Decide(t.Context(), tt.asked, registry.Call{})
			if v.Decision != tt.want {
				t.Errorf("%s (%s), want %s", v.Decision, v.Reason, tt.want)
			}
			if tt.want == Allow && (v.Origin != "approval" || v.Approval == "") {
				t.Errorf("origin %q, approval %q", v.Origin, v.Approval)
			}
			other := Policy{Approvals: &Approvals{Dir: a.Dir, Project: "/other"}}
			if v := other.Decide(t.Context(), tt.asked, registry.Call{}); v.Decision != Ask {
				t.Errorf("applies to another project: %+v", v)
			}
		})
	}
}

// An approval applies in the workspace in which it was given, wherever a project or a variable moves that.
func TestApprovalAppliesInOneWorkspace(t *testing.T) {
	tool, dir := pathTool("write_file", registry.CategoryWrite, "a"), stateDir(t)
	in := func(workspace string) *Approvals { return &Approvals{Dir: dir, Project: "/p", Workspace: workspace} }
	for _, given := range []string{"", "/p/sub"} {
		if err := in(given).Remember(t.Context(), tool, Scope{Kind: ScopeEdits}); err != nil {
			t.Fatal(err)
		}
		for _, workspace := range []string{"", "/p/sub", "/"} {
			want := Ask
			if workspace == given || given != "" && workspace == "" {
				want = Allow
			}
			if v := (&Policy{Approvals: in(workspace)}).Decide(t.Context(), tool, registry.Call{}); v.Decision != want {
				t.Errorf("given in %q, asked in %q: %s", given, workspace, v.Decision)
			}
		}
	}
	if list, err := in("").List(t.Context(), false); err != nil || len(list) != 2 || list[0].ID == list[1].ID {
		t.Errorf("%+v, %v", list, err)
	}
}

// An approval applies neither to a folder that has since replaced the project nor
// to another client.
func TestApprovalAppliesToOneFolderAndClient(t *testing.T) {
	tool, dir := mcpTool("s", "t", "t"), stateDir(t)
	if err := (&Approvals{Dir: dir, Project: "/p", Folder: "1"}).Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
		t.Fatal(err)
	}
	decide := func(ctx context.Context, folder string) Decision {
		p := Policy{Approvals: &Approvals{Dir: dir, Project: "/p", Folder: folder}}
		return p.Decide(ctx, tool, registry.Call{}).Decision
	}
	if got := decide(t.Context(), "1"); got != Allow {
		t.Errorf("in the same folder: %s", got)
	}
	for _, folder := range []string{"2", ""} {
		if got := decide(t.Context(), folder); got != Ask {
			t.Errorf("in folder %q: %s", folder, got)
		}
	}
	if got := decide(caller.With(t.Context(), &caller.Caller{Name: "bob"}), "1"); got != Ask {
		t.Errorf("for a client: %s", got)
	}
}

// An approval of a server or of all edits covers exactly the tools that existed at
// the time.
func TestApprovalCoversSiblings(t *testing.T) {
	plugin := func(name string) *registry.Tool {
		tool := pathTool(name, registry.CategoryWrite, "a")
		tool.Source = "plugin:x"
		return tool
	}
	for _, tt := range []struct {
		name     string
		given    *registry.Tool
		scope    ScopeKind
		siblings []*registry.Tool
		asked    *registry.Tool
		want     Decision
	}{
		{"a tool of the server", mcpTool("s", "t", "t"), ScopeServer, []*registry.Tool{mcpTool("s", "u", "u")}, mcpTool("s", "u", "u"), Allow},
		{"the tool itself, which was not listed", mcpTool("s", "t", "t"), ScopeServer, []*registry.Tool{mcpTool("s", "u", "u")}, mcpTool("s", "t", "t"), Allow},
		{"a tool that has come since", mcpTool("s", "t", "t"), ScopeServer, []*registry.Tool{mcpTool("s", "t", "t")}, mcpTool("s", "u", "u"), Ask},
		{"a tool of another server", mcpTool("s", "t", "t"), ScopeServer, []*registry.Tool{mcpTool("r", "u", "u")}, mcpTool("s", "u", "u"), Ask},
		{"a sibling, where one tool was approved", mcpTool("s", "t", "t"), ScopeTool, []*registry.Tool{mcpTool("s", "u", "u")}, mcpTool("s", "u", "u"), Ask},
		{"an edit by another tool", pathTool("edit", registry.CategoryWrite, "a"), ScopeEdits, []*registry.Tool{pathTool("write_file", registry.CategoryWrite)}, pathTool("write_file", registry.CategoryWrite, "b"), Allow},
		{"an edit by a tool that has come since", pathTool("edit", registry.CategoryWrite, "a"), ScopeEdits, nil, pathTool("write_file", registry.CategoryWrite, "b"), Ask},
		{"an edit by a plugin", pathTool("edit", registry.CategoryWrite, "a"), ScopeEdits, []*registry.Tool{plugin("write_file")}, pathTool("write_file", registry.CategoryWrite, "b"), Ask},
		{"an edit by a tool that only read then", pathTool("edit", registry.CategoryWrite, "a"), ScopeEdits, []*registry.Tool{pathTool("write_file", registry.CategoryRead)}, pathTool("write_file", registry.CategoryWrite, "b"), Ask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &Approvals{Dir: stateDir(t), Project: "/p", Siblings: func(string) []*registry.Tool { return tt.siblings }}
			if err := a.Remember(t.Context(), tt.given, Scope{Kind: tt.scope}); err != nil {
				t.Fatal(err)
			}
			if v := (&Policy{Approvals: a}).Decide(t.Context(), tt.asked, registry.Call{}); v.Decision != tt.want {
				t.Errorf("%s (%s), want %s", v.Decision, v.Reason, tt.want)
			}
		})
	}
	// The file lists exactly the covered tools, whatever the current rules decide.
	a := &Approvals{Dir: stateDir(t), Project: "/p", Siblings: func(string) []*registry.Tool {
		return []*registry.Tool{pathTool("write_file", registry.CategoryWrite), pathTool("read_file", registry.CategoryRead), plugin("p"), todoTool()}
	}}
	if err := a.Remember(t.Context(), pathTool("edit", registry.CategoryWrite, "a"), Scope{Kind: ScopeEdits}); err != nil {
		t.Fatal(err)
	}
	list, err := a.List(t.Context(), false)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if got := slices.Sorted(maps.Keys(list[0].Tools)); !slices.Equal(got, []string{"edit", "write_file"}) {
		t.Errorf("covered: %q", got)
	}
}

// An approval of a program does not apply if a rule may deny the command that a
// variable completes.
func TestApprovalDoesNotOverrideRuleThatMayDeny(t *testing.T) {
	p := Policy{Approvals: &Approvals{Dir: stateDir(t), Project: "/p"}, Rules: entries(t, Deny, "run_shell_command(make install)")}
	if err := p.Approvals.Remember(t.Context(), shellTool("make"), Scope{Kind: ScopeCommand, Values: []string{"make"}}); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Decision{"make all": Allow, "make $x": Ask, "make install": Deny} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want || len(v.Scopes) != 0 {
			t.Errorf("%s: %s %v (%s), want %s", line, v.Decision, v.Scopes, v.Reason, want)
		}
	}
}

func TestOfferedScopes(t *testing.T) {
	for name, tt := range map[string]struct {
		tool *registry.Tool
		want []Scope
	}{
		"mcp":              {mcpTool("s", "t", "t"), []Scope{{Kind: ScopeTool}, {Kind: ScopeServer}}},
		"edit":             {pathTool("edit", "write", "a"), []Scope{{Kind: ScopeEdits}}},
		"todo list":        {todoTool(), []Scope{{Kind: ScopeTool}}},
		"edit outside":     {pathTool("edit", "write", "../a"), []Scope{{Kind: ScopeTool}}},
		"exec":             {shellTool("make; go x; ls; make"), []Scope{{Kind: ScopeCommand, Values: []string{"make", "go x", "ls"}}}},
		"exec with doubts": {shellTool("make > x"), nil},
		"info":             {fetchTool("https://a.org/x"), []Scope{{Kind: ScopeHost, Values: []string{"a.org"}}}},
		"info, unreadable": {fetchTool("https://a.org", "%zz"), nil},
		"plugin":           {&registry.Tool{Definition: registry.Definition{Name: "p", Source: "plugin:x"}}, []Scope{{Kind: ScopeTool}}},
	} {
		p := Policy{Approvals: &Approvals{Dir: stateDir(t)}}
		if diff := cmp.Diff(tt.want, p.Decide(t.Context(), tt.tool, registry.Call{}).Scopes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	asking := mcpTool("s", "t", "t")
	asking.Confirm = func(context.Context, registry.Call) registry.Asking { return registry.Asking{Reason: "it costs money"} }
	guarded := Policy{Approvals: &Approvals{Dir: stateDir(t)}, Guarded: func(string) bool { return true }}
	for _, tool := range []*registry.Tool{asking, pathTool("edit", "write", "a")} {
		if v := guarded.Decide(t.Context(), tool, registry.Call{}); v.Decision != Ask || v.Scopes != nil {
			t.Errorf("%s would be asked about again: %s %+v", tool.Name, v.Decision, v.Scopes)
		}
	}
	p := Policy{Approvals: &Approvals{Dir: stateDir(t)}, Rules: []Rule{{Decision: Ask, Origin: "s.yaml:1"}}}
	if v := p.Decide(t.Context(), mcpTool("s", "t", "t"), registry.Call{}); v.Scopes != nil {
		t.Errorf("a rule that asks would ask again: %+v", v.Scopes)
	}
}

func TestApprovalReportsChanges(t *testing.T) {
	long := strings.Repeat("x", maxPart+1)
	tests := []struct {
		name   string
		change func(*registry.Tool)
		reason string
		want   []Change
	}{
		{"description", func(x *registry.Tool) { x.Description = "also mails it" }, "its description changed since you allowed it", []Change{{"description", "old", "also mails it"}}},
		{"command", func(x *registry.Tool) { x.Identity = []byte(`{"command":["evil"]}`) }, "its command or URL changed", []Change{{"behind", `{"command":["srv"]}`, `{"command":["evil"]}`}}},
		{"annotations and schema", func(x *registry.Tool) { x.Annotations, x.InputSchema = nil, []byte(`{"a":1}`) },
			"its annotations and its input schema changed", []Change{{"annotations", `{"readOnlyHint":true}`, ""}, {"inputSchema", "", `{"a":1}`}}},
		{"as long as is kept", func(x *registry.Tool) { x.Description = long[1:] }, "its description changed", []Change{{"description", "old", long[1:]}}},
		{"too long to keep", func(x *registry.Tool) { x.Description = long }, "its description changed", []Change{{"description", "old", ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Policy{Approvals: &Approvals{Dir: stateDir(t)}}
			tool := mcpTool("s", "t", "t")
			tool.Description = "old"
			if err := p.Approvals.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
				t.Fatal(err)
			}
			tt.change(tool)
			v := p.Decide(t.Context(), tool, registry.Call{})
			if v.Decision != Ask || !strings.HasPrefix(v.Reason, tt.reason) {
				t.Errorf("%s: %q", v.Decision, v.Reason)
			}
			if diff := cmp.Diff(tt.want, v.Changes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApprovalIgnoresKeyOrder(t *testing.T) {
	p := Policy{Approvals: &Approvals{Dir: stateDir(t)}}
	tool := mcpTool("s", "t", "t")
	tool.InputSchema = []byte(`{"a":1,"b":2}`)
	if err := p.Approvals.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
		t.Fatal(err)
	}
	tool.InputSchema = []byte(`{ "b": 2, "a": 1 }`)
	if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != Allow {
		t.Errorf("%+v", v)
	}
}

func TestApprovalsListRevokeClear(t *testing.T) {
	dir, now := stateDir(t), clock()
	a, b := &Approvals{Dir: dir, Project: "/a", Now: now}, &Approvals{Dir: dir, Project: "/b", Now: now}
	tool := mcpTool("s", "t", "t")
	for _, s := range []Scope{{Kind: ScopeTool}, {Kind: ScopeServer}, {Kind: ScopeTool}} {
		if err := a.Remember(t.Context(), tool, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Remember(t.Context(), shellTool("x"), Scope{Kind: ScopeCommand, Values: []string{"make", "go"}}); err != nil {
		t.Fatal(err)
	}
	show := func(list []Approval) (out []string) {
		for _, x := range list {
			out = append(out, fmt.Sprintf("%s %s %s %s", x.Project, x.Kind, x.Source, x.Value))
		}
		return out
	}
	mine, err := a.List(t.Context(), false)
	if diff := cmp.Diff([]string{"/a server mcp:s s", "/a tool mcp:s t"}, show(mine)); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	all, err := a.List(t.Context(), true)
	if len(all) != 4 || err != nil {
		t.Fatalf("%q, %v", show(all), err)
	}
	for _, id := range []string{"", "zz", "zzzzzzzzzz"} {
		_, err := a.Revoke(t.Context(), mine[0].ID, id)
		if !errors.Is(err, registry.ErrNotFound) || err.Error() != fmt.Sprintf("no approval with the id %q", id) {
			t.Errorf("revoking %q: %v", id, err)
		}
	}
	if left, _ := a.List(t.Context(), true); len(left) != 4 {
		t.Errorf("a revocation that fails removed something: %q", show(left))
	}
	gone, err := a.Revoke(t.Context(), mine[0].ID[:8])
	if diff := cmp.Diff([]string{"/a server mcp:s s"}, show(gone)); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	if n, err := a.Clear(t.Context(), false); n != 1 || err != nil {
		t.Errorf("clear: %d, %v", n, err)
	}
	if left, _ := a.List(t.Context(), true); len(left) != 2 {
		t.Errorf("clear of one project leaves %q", show(left))
	}
	if n, err := a.Clear(t.Context(), true); n != 2 || err != nil {
		t.Errorf("clear all: %d, %v", n, err)
	}
}

func TestRevocationElsewhereAppliesAtOnce(t *testing.T) {
	dir := stateDir(t)
	p, tool := Policy{Approvals: &Approvals{Dir: dir}}, mcpTool("s", "t", "t")
	if err := p.Approvals.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
		t.Fatal(err)
	}
	if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != Allow {
		t.Fatalf("%+v", v)
	}
	if _, err := (&Approvals{Dir: dir}).Clear(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != Ask {
		t.Errorf("%+v", v)
	}
}

func TestApprovalsDamaged(t *testing.T) {
	for name, content := range map[string]string{
		"no JSON": "{", "empty object": "{}", "wrong shape": `{"version":1,"approvals":{"a":1}}`, "hostile": `[[[[`, "null bytes": "\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			dir := stateDir(t)
			if err := os.MkdirAll(dir.Path, 0o700); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir.Path, approvalsFile)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var warned []string
			p := Policy{Approvals: &Approvals{Dir: dir, Warn: func(d registry.Diagnostic) { warned = append(warned, d.Code) }}}
			tool := mcpTool("s", "t", "t")
			for range 2 { // and warns once
				if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != Ask {
					t.Errorf("decides %+v", v)
				}
			}
			if data, _ := os.ReadFile(file); string(data) != content {
				t.Errorf("reading changed the file to %q", data)
			}
			if err := p.Approvals.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
				t.Fatal(err)
			}
			saved := Policy{Approvals: &Approvals{Dir: dir, Warn: func(d registry.Diagnostic) { t.Errorf("after saving it warns: %s", d.Code) }}}
			if v := saved.Decide(t.Context(), tool, registry.Call{}); v.Decision != Allow {
				t.Errorf("after saving: %+v", v)
			}
			kept, _ := filepath.Glob(filepath.Join(dir.Path, "*.bad-*[0-9a-f]"))
			if len(kept) != 1 {
				t.Fatalf("kept %q", kept)
			}
			if data, _ := os.ReadFile(kept[0]); string(data) != content {
				t.Errorf("kept %q", data)
			}
			if diff := cmp.Diff([]string{"approvals_unreadable", "approvals_set_aside"}, warned); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApprovalsOfNewerVersionAreKept(t *testing.T) {
	dir := stateDir(t)
	a := &Approvals{Dir: dir}
	const content = `{"version":99,"approvals":"in another shape"}`
	if err := dir.Update(t.Context(), approvalsFile, func([]byte) ([]byte, error) { return []byte(content), nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := a.List(t.Context(), false); err == nil || !strings.Contains(err.Error(), "newer toolreg") {
		t.Errorf("list: %v", err)
	}
	if err := a.Remember(t.Context(), mcpTool("s", "t", "t"), Scope{Kind: ScopeTool}); err == nil {
		t.Error("remembering overwrote it")
	}
	if data, err := dir.Read(approvalsFile); string(data) != content || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

func TestApprovalsReportUnavailableState(t *testing.T) {
	a := &Approvals{Unavailable: errors.New("the disk is gone")}
	err := a.Remember(t.Context(), mcpTool("s", "t", "t"), Scope{Kind: ScopeTool})
	if err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("%v", err)
	}
	if list, err := a.List(t.Context(), true); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// DecideTool ignores rules that need params.
func TestDecideTool(t *testing.T) {
	edit := pathTool("edit", "write", "/outside")
	asked := errors.New("asked for the subject")
	edit.Subject = func(registry.Call) (registry.Subject, error) { return registry.Subject{}, asked }
	approvals := &Approvals{Dir: stateDir(t)}
	path := []Rule{{Tool: "edit", Path: "**", Decision: Deny, Origin: "s.yaml:1"}}
	command := []Rule{{Command: "ls", Decision: Deny, Origin: "s.yaml:1"}}
	tests := []struct {
		name   string
		policy Policy
		tool   *registry.Tool
		want   Decision
	}{
		{"by default", Policy{}, edit, Ask},
		{"rules on paths are left out", Policy{Rules: path}, edit, Ask},
		{"rules on commands are left out", Policy{Rules: command}, shellTool("ls"), Ask},
		{"other rules count", Policy{Rules: []Rule{{Tool: "Edit", Decision: Deny}}}, edit, Deny},
		{"the mode counts", Policy{Mode: ModeAutoEdit}, edit, Allow},
		{"plan mode counts", Policy{Mode: ModePlan}, edit, Deny},
		{"approvals count", Policy{Approvals: approvals}, edit, Allow},
	}
	if err := approvals.Remember(t.Context(), edit, Scope{Kind: ScopeEdits}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if v := tt.policy.DecideTool(t.Context(), tt.tool); v.Decision != tt.want || v.Reason == "" {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestApprovalsWithoutState(t *testing.T) {
	p, tool := Policy{Approvals: &Approvals{}}, mcpTool("s", "t", "t")
	v := p.Decide(t.Context(), tool, registry.Call{})
	if v.Decision != Ask || len(v.Scopes) == 0 {
		t.Errorf("%+v", v)
	}
	if err := p.Approvals.Remember(t.Context(), tool, v.Scopes[0]); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("remember: %v", err)
	}
}

func TestApprovalsConcurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("many writes")
	}
	dir := stateDir(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a := &Approvals{Dir: dir, Project: fmt.Sprintf("/p%d", i)}
			for j := range 3 {
				if err := a.Remember(t.Context(), mcpTool("s", fmt.Sprint(j), "t"), Scope{Kind: ScopeTool}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := (&Approvals{Dir: dir}).List(t.Context(), true); len(all) != 60 || err != nil {
		t.Errorf("%d approvals, %v", len(all), err)
	}
}

// TestConfirmVectors replays recorded cases: which calls ask again after which
// answer.
func TestConfirmVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/confirm.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name  string
			Steps []struct{ Server, Tool, Outcome string }
			Want  []json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]ScopeKind{"proceed_always_tool": ScopeTool, "proceed_always_server": ScopeServer}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			p := Policy{Approvals: &Approvals{Dir: stateDir(t)}}
			for i, s := range c.Steps {
				tool := mcpTool(s.Server, s.Tool, registry.ValidName(s.Tool))
				v := p.Decide(t.Context(), tool, registry.Call{})
				if asked, want := v.Decision == Ask, string(c.Want[i]) != "false"; asked != want {
					t.Errorf("step %d: asked %t, want %t", i, asked, want)
				}
				// A plain "always" has no effect on MCP tools in the recorded
				// cases. Here it approves the tool, as TestApprovalCovers checks.
				if kind, ok := kinds[s.Outcome]; ok {
					if err := p.Approvals.Remember(t.Context(), tool, Scope{Kind: kind}); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// An approval covers the values that are not shown, and stores neither them nor a hash
// from which they could be guessed.
func TestApprovalsCoverWhatIsNotShown(t *testing.T) {
	value := "hunter2"
	store := func() *Approvals {
		return &Approvals{Dir: stateDir(t), Project: "/p", Behind: func(context.Context, *registry.Tool) ([]byte, error) { return []byte(value), nil }}
	}
	a, b := store(), store()
	tool := mcpTool("s", "echo", "echo")
	for _, x := range []*Approvals{a, b} {
		if err := x.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
			t.Fatal(err)
		}
	}
	decide := func() Verdict { return (&Policy{Approvals: a}).Decide(t.Context(), tool, registry.Call{}) }
	if v := decide(); v.Decision != Allow {
		t.Errorf("unchanged: %+v", v)
	}
	value = "hunter3"
	if v := decide(); v.Decision != Ask || len(v.Changes) != 1 || v.Changes[0] != (Change{Part: PartValues}) {
		t.Errorf("changed: %+v", v)
	}
	inA, errA := a.List(t.Context(), true)
	inB, errB := b.List(t.Context(), true)
	if errA != nil || errB != nil || inA[0].Tools["echo"].Behind == "" || inA[0].Tools["echo"].Behind == inB[0].Tools["echo"].Behind {
		t.Errorf("two machines have the same hash: %+v %+v", inA, inB)
	}
}

// An answer to run a command in the sandbox covers any options, and asks again where
// the sandbox is not available. The last answer for the same words counts.
func TestApprovalInSandbox(t *testing.T) {
	a := &Approvals{Dir: &state.Dir{Path: t.TempDir()}}
	missing := ""
	p := &Policy{Approvals: a, Means: func(string) Means { return Means{Missing: func() string { return missing }} }}
	decide := func(line string) Decision {
		tool := shellTool(line)
		tool.Program = "shell"
		return p.Decide(t.Context(), tool, registry.Call{}).Decision
	}
	tool := shellTool("make all")
	tool.Program = "shell"
	v := p.Decide(t.Context(), tool, registry.Call{})
	if want := []Scope{{Kind: ScopeCommand, Values: []string{"make"}, Confined: true}, {Kind: ScopeCommand, Values: []string{"make"}}}; !cmp.Equal(v.Scopes, want) || !v.InSandbox.On {
		t.Fatalf("offered %+v, %+v", v.Scopes, v.InSandbox)
	}
	if err := a.Remember(t.Context(), tool, v.Scopes[0]); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Decision{"make": Sandbox, "make --eval=x all": Ask, "make -C sub all": Sandbox, "make > f": Ask, "env -i make": Ask, "env make": Sandbox, "ninja": Ask} {
		if got := decide(line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	missing = "no kernel support"
	if got := decide("make"); got != Ask {
		t.Errorf("without a sandbox: %s", got)
	}
	missing = ""
	if err := a.Remember(t.Context(), tool, v.Scopes[1]); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Decision{"make all": Allow, "make -C sub all": Ask} {
		if got := decide(line); got != want {
			t.Errorf("outside, %s: %s, want %s", line, got, want)
		}
	}
}

// A tool that nothing but its definition provides has no hash of that.
func TestNothingBehindTool(t *testing.T) {
	a := &Approvals{Dir: stateDir(t), Behind: func(context.Context, *registry.Tool) ([]byte, error) { return nil, nil }}
	list, err := a.New(t.Context(), todoTool(), Scope{Kind: ScopeTool})
	if err != nil || list[0].Tools[todoTool().OriginalName()].Behind != "" {
		t.Errorf("%+v, %v", list, err)
	}
}
