package agents

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// Files of a project from which servers are imported can start programs, so no tool
// may write them without confirmation.
func TestFilesOfTheProjectAreGuarded(t *testing.T) {
	n := 0
	for _, program := range (Importer{}).Programs() {
		for _, f := range (Importer{}).Files(program, "/p", []string{"HOME=/home/ann"}) {
			if !f.Project {
				continue
			}
			n++
			if rel, err := filepath.Rel("/p", f.Path); err != nil || !workspace.Guarded(rel) {
				t.Errorf("%s: %s can be written without confirmation", program, f.Path)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d files", n)
	}
}

func TestHomeAsProject(t *testing.T) {
	home := t.TempDir()
	for _, f := range (Importer{}).Files("cursor", home, []string{"HOME=" + home, "USERPROFILE=" + home}) {
		if f.Project {
			t.Errorf("%s is the user's file, but is returned as the project's", f.Path)
		}
	}
}

func TestVariablesSetFolders(t *testing.T) {
	x := filepath.ToSlash(t.TempDir())
	env := []string{"HOME=" + x, "USERPROFILE=" + x, "APPDATA=" + x + "/x", "CODEX_HOME=" + x + "/c", "CLAUDE_CONFIG_DIR=" + x + "/cl", "XDG_CONFIG_HOME=" + x + "/x"}
	want := map[string]string{"codex": x + "/c/config.toml", "claude": x + "/cl/.claude.json", "zed": x + "/x/zed/settings.json", "opencode": x + "/x/opencode/opencode.json"}
	for program, path := range want {
		var paths []string
		for _, f := range (Importer{}).Files(program, "/p", env) {
			paths = append(paths, filepath.ToSlash(f.Path))
		}
		if !strings.Contains(strings.Join(paths, "\n")+"\n", path+"\n") {
			t.Errorf("%s looks at %v, want %s among them", program, paths, path)
		}
	}
}

func TestDialects(t *testing.T) {
	environ := []string{"A=1", "HOME=/h", "EMPTY="}
	x := values.NewExpander("/p", environ)
	tests := []struct {
		name string
		d    dialect
		in   string
		want string // after expansion by toolreg
	}{
		{"plain", plain, "$A ${A} $$ {env:A}", "$A ${A} $$ {env:A}"},
		{"plain reference", plain, "cmd:touch /tmp/x", "cmd:touch /tmp/x"},
		{"braces", braces, "$A ${A} ${NO:-$A} ${1x} ${", "$A 1 $A ${1x} ${"},
		{"braces reference", braces, "env:A", "env:A"},
		{"shell", shellLike, "$A ${A}", "1 1"},
		{"editor", editorLike("/p$A"), "${env:A} ${workspaceFolder} ${userHome} $A", "1 /p$A /h $A"},
		{"editor reference", editorLike("/p"), "file:/etc/passwd", "file:/etc/passwd"},
		{"opencode", opencodeLike, "{env:A}{env:NONE} $A {no} {", "1 $A {no} {"},
	}
	for _, test := range tests {
		text, err := test.d(test.in, true)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got, err := x.Secret(t.Context(), text, settings.ScopeUser); err != nil || got != test.want {
			t.Errorf("%s: %q became %q, expanded to %q, %v; want %q", test.name, test.in, text, got, err, test.want)
		}
	}
}

func TestExcessiveTOMLIsRejected(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": "a = " + strings.Repeat("[", 1<<19),
		"inline":   "a = " + strings.Repeat("{a=", 1<<18),
		"dots":     strings.Repeat("a.", 1<<18) + "a = 1",
		"tables":   "[" + strings.Repeat("a.", 1<<18) + "a]",
		"size":     strings.Repeat("#\n", 1<<20),
		"syntax":   "x = \n",
		"type":     "mcp_servers = 3\n",
	} {
		if servers, problems := readCodexServers(nil, "c.toml", []byte(text)); len(servers) > 0 || len(problems) != 1 {
			t.Errorf("%s: %d servers, problems %v", name, len(servers), problems)
		}
	}
}

// FuzzRead checks that no file causes a panic.
func FuzzRead(f *testing.F) {
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "fuzz") {
			return err
		}
		data, err := os.ReadFile(path)
		f.Add(data)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, program := range (Importer{}).Programs() {
			for _, file := range (Importer{}).Files(program, "/p", []string{"HOME=/h"}) {
				servers, _ := file.Read(&document.Foreign{}, file.Path, data)
				for _, s := range servers {
					if s.Enabled == nil && (s.JSON == nil) == (s.Problem == "") {
						t.Fatalf("%s: %q has neither an entry nor a reason, or both", program, s.Name)
					}
				}
			}
		}
	})
}

func TestPastedJSON(t *testing.T) {
	tests := []struct{ data, name, want string }{
		{`{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"]}, "b": {"url": "https://h/mcp"}}}`, "", `a {"command":"npx","args":["-y","x"]}; b {"url":"https://h/mcp"}`},
		{`{"servers": {"a": {"type": "stdio", "command": "q"}}}`, "", `a {"type":"stdio","command":"q"}`},
		{`{"a": {"command": "q", "connectTimeout": "5s"}}`, "", `a {"command":"q","connectTimeout":"5s"}`},
		{`{"command": "q", /* c */}`, "x", `x {"command":"q"}`},
		{`{"mcpServers": {"a": {"command": "q"}}}`, "x", `x {"command":"q"}`},
		{`{"a": {"command": "q", "alwaysAllow": ["t"], "env": {"P": "$5"}}}`, "", `a {"command":"q","env":{"P":"$$5"}}`},
		{`{"a": {"type": "streamable-http", "url": "https://h/mcp"}}`, "", `a {"type":"streamable-http","url":"https://h/mcp"}`},
		{`{"mcp": {"inputs": [], "servers": {"a": {"command": "q"}}}}`, "", `a {"command":"q"}`},
		{`"a": {"command": "q"}`, "", `a {"command":"q"}`},
		{"\"a\": {\"command\": \"q\"},\n\"b\": {\"url\": \"https://h/mcp\"},", "", `a {"command":"q"}; b {"url":"https://h/mcp"}`},
		{"```json\n{\"mcpServers\": {\"a\": {\"command\": \"q\"}}}\n```", "", `a {"command":"q"}`},
		{`{"name": "a", "command": "q"}`, "", `a {"command":"q"}`},
		{`{"mcp": {"a": {"type": "local", "command": ["q", "-x"], "environment": {"K": "{env:K}"}}}}`, "", `a {"command":"q","args":["-x"],"env":{"K":"${K:-}"}}`},
		{`{"mcpServers": {"a": {"type": "local", "command": "q", "args": ["-x"], "tools": ["*"]}}}`, "", `a {"command":"q","args":["-x"],"type":"stdio"}`},
		{`{"mcpServers": {"a": {"command": "q", "autoApprove": [], "disabledTools": ["t"], "description": "$A"}, "b": {"url": "https://h/sse", "transport": "sse", "tools": ["t"]}}}`, "",
			`a {"command":"q","description":"$$A","excludeTools":["t"]}; b {"url":"https://h/sse","type":"sse","includeTools":["t"]}`},
		{`{"mcpServers": {"a": {"command": ["q"], "allowedTools": ["t"], "blockedTools": ["u"]}}}`, "", `a {"command":"q","includeTools":["t"],"excludeTools":["u"]}`},
		{`{"context_servers": {"a": {"command": {"path": "q", "args": ["x"]}}}}`, "", `a {"command":"q","args":["x"]}`},
		{`{"servers": {"a": {"url": "https://h/mcp", "headers": {"K": "${env:K}"}}}}`, "", `a {"url":"https://h/mcp","headers":{"K":"${K:-}"}}`},
		{`{"servers": {"a": {"url": "https://h/mcp", "headers": {"K": "${input:k}"}}}}`, "", "a it asks for the input \"k\", which only the editor can give; add the server with `toolreg servers add` and env:NAME"},
		{`{"a": {"command": "q", "timeout": 60}, "b": {"command": "q", "timeout": 1.5, "autoApprove": []}, "c": {"command": "q", "timeout": 60000}}`, "",
			`a {"command":"q","timeout":"60s"}; b {"command":"q","timeout":"1.5s"}; c {"command":"q","timeout":60000}`},
		{`{"context_servers": {"a": {"command": {"path": "q"}, "timeout": 60}}}`, "", `a {"command":"q","timeout":"60s"}`},
		{`{"a": {"enabled": true}}`, "", `a its entry has neither a command nor a url`},
		{`{"a": {"command": "C:\Users\q.exe"}}`, "", `error: JSON:1:19: invalid JSON: a string has a backslash that does not begin an escape (write \\ or / for`},
		{`{"a": {"type": "odd", "url": "https://h/mcp"}}`, "", `a its type must be stdio, http or sse`},
		{`{"command": "q"}`, "", "error: the JSON is a single entry without a name"},
		{`{"a": {"command": "q"}, "b": {"command": "r"}}`, "x", `error: the JSON contains 2 servers, but you gave one name, "x"`},
		{`{"a": `, "", "error: JSON:"},
		{`["q"]`, "x", "error: JSON:1:1: "},
	}
	for _, test := range tests {
		servers, err := ParsePasted([]byte(test.data), test.name)
		var got []string
		for _, s := range servers {
			got = append(got, s.Name+" "+s.Problem+string(s.JSON))
		}
		text := strings.Join(got, "; ")
		if err != nil {
			text = "error: " + err.Error()
		}
		if want, isError := test.want, strings.HasPrefix(test.want, "error: "); text != want && !(isError && strings.HasPrefix(text, want)) {
			t.Errorf("%s as %q: %s; want %s", test.data, test.name, text, want)
		}
	}
}
