package edit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

func add(name string) Change {
	return Change{Name: name, Entry: json.RawMessage(`{"command":"npx","args":["-y","a b"],"env":{"K":"true"}}`)}
}

func turn(name string, off bool) Change { return Change{Name: name, Off: &off} }

func TestEditsPreserveTheRest(t *testing.T) {
	tests := []struct {
		name, file string
		edit       Change
		in, want   string
	}{
		{"new yaml", "s.yaml", add("x"), "",
			"mcpServers:\n  x:\n    command: npx\n    args: [-y, a b]\n    env:\n      K: \"true\"\n"},
		{"yaml without servers", "s.yml", add("x.y: z"), "# mine\nexcludeTools: [a] # why",
			"# mine\nexcludeTools: [a] # why\nmcpServers:\n  'x.y: z':\n    command: npx\n    args: [-y, a b]\n    env:\n      K: \"true\"\n"},
		{"yaml between", "s.yaml", add("x"),
			"mcpServers:\n    # first\n    a: {command: q} # flow\n    b:\n        command: |\n          # no comment\n\n    # last\n\n# of the next\nenv: {A: b}\n",
			"mcpServers:\n    # first\n    a: {command: q} # flow\n    b:\n        command: |\n          # no comment\n\n    # last\n    x:\n      command: npx\n      args: [-y, a b]\n      env:\n        K: \"true\"\n\n# of the next\nenv: {A: b}\n"},
		{"yaml null", "s.yaml", add("x"), "mcpServers: # none yet\nenv: {A: b}\n",
			"mcpServers: # none yet\n  x:\n    command: npx\n    args: [-y, a b]\n    env:\n      K: \"true\"\nenv: {A: b}\n"},
		{"yaml flow", "s.yaml", add("x"), "# top\nmcpServers: {a: {command: q}}\n",
			"# top\nmcpServers: {a: {command: q}, x: {command: npx, args: [-y, a b], env: {K: \"true\"}}}\n"},
		{"yaml empty flow", "s.yaml", add("x"), "mcpServers: {}\n",
			"mcpServers:\n  x:\n    command: npx\n    args: [-y, a b]\n    env:\n      K: \"true\"\n"},
		{"yaml crlf", "s.yaml", add("x"), "mcpServers:\r\n  a:\r\n    command: q\r\n",
			"mcpServers:\r\n  a:\r\n    command: q\r\n  x:\r\n    command: npx\r\n    args: [-y, a b]\r\n    env:\r\n      K: \"true\"\r\n"},
		{"yaml remove first", "s.yaml", Change{Name: "a", Drop: true}, "mcpServers:\n  a:\n    command: q\n    # inside\n\n  # of b\n  b: {command: r}\n",
			"mcpServers:\n\n  # of b\n  b: {command: r}\n"},
		{"yaml remove last", "s.yaml", Change{Name: "b", Drop: true}, "mcpServers:\n  a: {command: q}\n  b:\n    command: r\n    args:\n      - x\n\n# next\nenv: {}\n",
			"mcpServers:\n  a: {command: q}\n\n# next\nenv: {}\n"},
		{"yaml remove only", "s.yaml", Change{Name: "a", Drop: true}, "mcpServers:\n  a: {command: q}\n", ""},
		{"yaml remove only between", "s.yaml", Change{Name: "a", Drop: true}, "# mine\nexcludeTools: [x]\n# servers\nmcpServers:\n  # of a\n  a: {command: q}\n\n# next\nenv: {}\n",
			"# mine\nexcludeTools: [x]\n# servers\n\n# next\nenv: {}\n"},
		{"yaml remove only in flow", "s.yaml", Change{Name: "a", Drop: true}, "mcpServers: {a: {command: q}}\nenv: {A: b}\n", "env: {A: b}\n"},
		{"json remove only", "s.json", Change{Name: "a", Drop: true}, "{\n  \"env\": {},\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"}\n  }\n}\n", "{\n  \"env\": {}\n}\n"},
		{"yaml off", "s.yaml", turn("a", true), "mcpServers:\n  a:\n    # the program\n    command: q # yes\n", "mcpServers:\n  a:\n    # the program\n    disabled: true\n    command: q # yes\n"},
		{"yaml on", "s.yaml", turn("a", false), "mcpServers:\n  a:\n    command: q\n    disabled: true # for now\n", "mcpServers:\n  a:\n    command: q\n"},
		{"yaml on, nothing else", "s.yaml", turn("a", false), "mcpServers:\n  a:\n    disabled: true\n", "mcpServers:\n  a:\n    disabled: false\n"},
		{"yaml off in flow", "s.yaml", turn("a", true), "mcpServers: {\n  a: {command: q}}\n", "mcpServers: {\n  a: {disabled: true, command: q}}\n"},
		{"yaml on already", "s.yaml", turn("a", false), "mcpServers: {a: {command: q}}", "mcpServers: {a: {command: q}}"},
		{"new json", "s.json", add("x"), "",
			"{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\",\n        \"a b\"\n      ],\n      \"env\": {\n        \"K\": \"true\"\n      }\n    }\n  }\n}\n"},
		{"json last", "s.json", add("x"), "{\n\t\"mcpServers\": {\n\t\t// first\n\t\t\"a\": {\"command\": \"q\"} // of a\n\t\t// end\n\t}, // after\n\t\"env\": {}\n}\n",
			"{\n\t\"mcpServers\": {\n\t\t// first\n\t\t\"a\": {\"command\": \"q\"}, // of a\n\t\t// end\n\t\t\"x\": {\n\t\t\t\"command\": \"npx\",\n\t\t\t\"args\": [\n\t\t\t\t\"-y\",\n\t\t\t\t\"a b\"\n\t\t\t],\n\t\t\t\"env\": {\n\t\t\t\t\"K\": \"true\"\n\t\t\t}\n\t\t}\n\t}, // after\n\t\"env\": {}\n}\n"},
		{"json in one line", "s.json", Change{Name: "x", Entry: json.RawMessage(`{"url":"http://h"}`)}, `{"mcpServers": {"a": {"command": "q"}}, "n": 1.50}`,
			`{"mcpServers": {"a": {"command": "q"}, "x": {"url":"http://h"}}, "n": 1.50}`},
		{"json trailing comma", "s.json", Change{Name: "x", Entry: json.RawMessage(`{"url":"http://h"}`)}, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"}, /* , */\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"}, /* , */\n    \"x\": {\n      \"url\": \"http://h\"\n    },\n  },\n}\n"},
		{"json without servers", "s.json", Change{Name: "x", Entry: json.RawMessage(`{"url":"http://h"}`)}, "{\r\n  \"env\": {}\r\n}",
			"{\r\n  \"env\": {},\r\n  \"mcpServers\": {\r\n    \"x\": {\r\n      \"url\": \"http://h\"\r\n    }\r\n  }\r\n}"},
		{"json null", "s.json", Change{Name: "x", Entry: json.RawMessage(`{"url":"http://h"}`)}, "{\n  \"mcpServers\": null\n}\n",
			"{\n  \"mcpServers\": {\n    \"x\": {\n      \"url\": \"http://h\"\n    }\n  }\n}\n"},
		{"json remove first", "s.json", Change{Name: "a", Drop: true}, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"}, // of a\n    // of b\n    \"b\": {\"command\": \"r\"}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    // of b\n    \"b\": {\"command\": \"r\"}\n  }\n}\n"},
		{"json remove last", "s.json", Change{Name: "b", Drop: true}, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"}, // of a\n    \"b\": {\n      \"command\": \"r\"\n    }\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"} // of a\n  }\n}\n"},
		{"json remove in one line", "s.json", Change{Name: "a", Drop: true}, `{"mcpServers": {"a": {"command": "q"}, "b": {"command": "r"}}}`, `{"mcpServers": {"b": {"command": "r"}}}`},
		{"json remove a name with marks of pointers", "s.json", Change{Name: "a/b~c", Drop: true}, `{"mcpServers": {"a/b~c": {"command": "q"}, "d": {"command": "r"}}}`, `{"mcpServers": {"d": {"command": "r"}}}`},
		{"json remove with a trailing comma", "s.json", Change{Name: "b", Drop: true}, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"},\n    /* of b */\n    \"b\": {\"command\": \"r\"}, // too\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"},\n  },\n}\n"},
		{"json off", "s.json", turn("a", true), "{\n  \"mcpServers\": {\n    \"a\": { // why\n      \"command\": \"q\"\n    }\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"disabled\": true, // why\n      \"command\": \"q\"\n    }\n  }\n}\n"},
		{"json on", "s.json", turn("a", false), `{"mcpServers": {"a": {"command": "q", "disabled": true /* now */}}}`, `{"mcpServers": {"a": {"command": "q" /* now */}}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.edit.Apply(test.file, []byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Disabling a server and enabling it again, and adding one and removing it, leave the file
// as it was.
func TestEditsLeaveNoTraces(t *testing.T) {
	for file, contents := range map[string][]string{
		"s.yaml": {"mcpServers:\n  a:\n    command: q\n", "# mine\nmcpServers: {a: {command: q}, b: {url: 'http://h'}} # these\n", "env: {A: b}\nmcpServers:\n    a:\n        # why\n        command: q # x\n\n# end\n"},
		"s.json": {"{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"q\"\n    }\n  }\n}\n", `{"mcpServers": {"a": {"command": "q"}}}`, "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"q\"}, // a\n\t\t\"b\": {\"url\": \"http://h\"},\n\t},\n}\n"},
	} {
		for _, content := range contents {
			for _, changes := range [][]Change{{turn("a", true), turn("a", false)}, {add("new"), {Name: "new", Drop: true}}} {
				got := []byte(content)
				for _, change := range changes {
					var err error
					if got, err = change.Apply(file, got); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(content, string(got)); diff != "" {
					t.Errorf("-before +after:\n%s", diff)
				}
			}
		}
	}
}

func TestSet(t *testing.T) {
	set := func(value string, path ...string) Set {
		return Set{Paths: [][]string{path, {"twin"}}, Value: json.RawMessage(value)}
	}
	tests := []struct {
		name, file string
		edit       Set
		in, want   string
	}{
		{"new yaml", "s.yaml", set(`"plan"`, "approvalMode"), "", "approvalMode: plan\n"},
		{"only comments", "s.yaml", set(`"plan"`, "approvalMode"), "# approvalMode: default\n", "# approvalMode: default\napprovalMode: plan\n"},
		{"in place", "s.yaml", set(`"plan"`, "approvalMode"), "# mine\napprovalMode: default   # why\nenv: {A: b}\n", "# mine\napprovalMode: plan   # why\nenv: {A: b}\n"},
		{"quoted", "s.yaml", set(`"plan"`, "approvalMode"), "approvalMode: \"default\" # why\nenv: {A: b}\n", "approvalMode: plan # why\nenv: {A: b}\n"},
		{"looks like another type", "s.yaml", set(`"true"`, "env", "A"), "env:\n  A: b\n", "env:\n  A: \"true\"\n"},
		{"nested, new", "s.yaml", set(`"deny"`, "policy", "defaults", "write"), "env: {A: b}\n", "env: {A: b}\npolicy:\n  defaults:\n    write: deny\n"},
		{"nested, between", "s.yaml", set(`"deny"`, "policy", "defaults", "write"),
			"policy:\n  defaults:\n    read: allow # r\n\n  # the rules\n  rules: []\n\n# next\nenv: {A: b}\n",
			"policy:\n  defaults:\n    read: allow # r\n    write: deny\n\n  # the rules\n  rules: []\n\n# next\nenv: {A: b}\n"},
		{"nested, last", "s.yaml", set(`"deny"`, "policy", "defaults", "write"), "policy:\n  rules: []\n  # of defaults\n  defaults:\n\n# next\nenv: {A: b}\n",
			"policy:\n  rules: []\n  # of defaults\n  defaults:\n    write: deny\n\n# next\nenv: {A: b}\n"},
		{"in flow", "s.yaml", set(`"30s"`, "shell", "timeout"), "shell: {timeout: 20s, banned: [x]} # why\n", "shell: {timeout: 30s, banned: [x]} # why\n"},
		{"list", "s.yaml", set(`["a","b c"]`, "excludeTools"), "# ex\nexcludeTools: [x] # these\nenv: {A: b}\n", "# ex\nexcludeTools: [a, b c] # these\nenv: {A: b}\n"},
		{"list over lines", "s.yaml", set(`["a"]`, "excludeTools"), "excludeTools:\n  - x # gone\n  - y\n\n# next\nenv: {A: b}\n", "excludeTools: [a]\n\n# next\nenv: {A: b}\n"},
		{"same", "s.yaml", set(`["a"]`, "excludeTools"), "excludeTools:\n  - a\n", "excludeTools:\n  - a\n"},
		{"twin", "s.yaml", set(`1`, "x", "y"), "twin: 2\n", "twin: 1\n"},
		{"new json", "s.json", set(`true`, "policy", "x"), "", "{\n  \"policy\": {\n    \"x\": true\n  }\n}\n"},
		{"json in place", "s.json", set(`"plan"`, "approvalMode"), "{\n  // mine\n  \"approvalMode\": \"default\", // why\n  \"env\": {}\n}\n", "{\n  // mine\n  \"approvalMode\": \"plan\", // why\n  \"env\": {}\n}\n"},
		{"json nested", "s.json", set(`"deny"`, "policy", "defaults", "write"), "{\n  \"policy\": {\n    \"defaults\": {\"read\": \"ask\"}\n  }\n}\n", "{\n  \"policy\": {\n    \"defaults\": {\"read\": \"ask\", \"write\": \"deny\"}\n  }\n}\n"},
		{"json list", "s.json", set(`["a"]`, "excludeTools"), "{\"excludeTools\": [/* x */ \"x\"], \"n\": 1}", "{\"excludeTools\": [\"a\"], \"n\": 1}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.edit.Apply(test.file, []byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, in := range []string{"policy: 3\n", "policy: &p {a: b}\nx: *p\n"} {
		if out, err := set(`"x"`, "policy", "a", "b").Apply("s.yaml", []byte(in)); err == nil {
			t.Errorf("%q became %q, want an error", in, out)
		}
	}
}

func TestRewrite(t *testing.T) {
	tests := []struct {
		name, file, in, entry, text, want string
	}{
		{"yaml", "s.yaml", "mcpServers:\n  # of a\n  a:\n    # the program\n    command: q # yes\n    args:\n      - x\n\n  # of b\n  b: {command: r}\n",
			"# the program\ncommand: q # yes\nargs:\n  - x\n", "command: q # no\n# more\nenv:\n  A: b\n",
			"mcpServers:\n  # of a\n  a:\n    command: q # no\n    # more\n    env:\n      A: b\n\n  # of b\n  b: {command: r}\n"},
		{"yaml, last", "s.yaml", "mcpServers:\n    a:\n        command: q\n\n# next\nenv: {A: b}\n", "command: q\n", "command: r\n# end\n",
			"mcpServers:\n    a:\n        command: r\n        # end\n\n# next\nenv: {A: b}\n"},
		{"yaml, flow", "s.yaml", "mcpServers:\n  a: {command: q} # why\n", "command: q\n", "command: r\n", "mcpServers:\n  a: # why\n    command: r\n"},
		{"crlf", "s.yaml", "mcpServers:\r\n  a:\r\n    command: q\r\n", "command: q\n", "command: r\n", "mcpServers:\r\n  a:\r\n    command: r\r\n"},
		{"json", "s.json", "{\n  \"mcpServers\": {\n    // of a\n    \"a\": {\n      \"command\": \"q\" // yes\n    }, // after\n    \"b\": {}\n  }\n}\n",
			"{\n  \"command\": \"q\" // yes\n}\n", "{\n  \"command\": \"r\", // no\n  \"cwd\": \".\"\n}\n",
			"{\n  \"mcpServers\": {\n    // of a\n    \"a\": {\n      \"command\": \"r\", // no\n      \"cwd\": \".\"\n    }, // after\n    \"b\": {}\n  }\n}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			entry, err := Entry(test.file, []byte(test.in), "a")
			if err != nil || string(entry) != test.entry {
				t.Errorf("entry %q, %v; want %q", entry, err, test.entry)
			}
			got, err := Rewrite{"a", []byte(test.text)}.Apply(test.file, []byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for text, want := range map[string]string{"command: [\n": "entry.yaml:", "args: [x]\n": "needs a command", "command: q\nargs: 3\n": "expected a list of strings"} {
		if out, err := (Rewrite{"a", []byte(text)}).Apply("s.yaml", []byte("mcpServers:\n  a: {command: q}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want an error with %q", text, out, err, want)
		}
	}
}

func TestEditsThatFail(t *testing.T) {
	tests := []struct {
		name, file string
		edit       Change
		in, want   string
	}{
		{"there already", "s.yaml", add("a"), "mcpServers: {a: {command: q}}", `server "a" already exists in s.yaml`},
		{"not there", "s.json", Change{Name: "b", Drop: true}, `{"mcpServers": {"a": {"command": "q"}}}`, `server "b" does not exist in s.json`},
		{"broken", "s.yaml", add("a"), "x: [\n", "s.yaml:"},
		{"wrong type", "s.yaml", add("a"), "mcpServers: 3\n", "s.yaml:1:13: mcpServers: expected an object, got number"},
		{"shared by an alias", "s.yaml", Change{Name: "a", Drop: true}, "context: {x: &s {a: {command: q}, b: {command: r}}}\nmcpServers: *s\n", "cannot be edited safely"},
		{"part of another server", "s.yaml", turn("a", true), "mcpServers:\n  a: &x\n    command: q\n  b: *x\n", "cannot be edited safely"},
		{"another server's value", "s.yaml", turn("b", true), "mcpServers:\n  a: &x\n    command: q\n  b: *x\n", "cannot be edited safely"},
		{"no object", "s.yaml", turn("a", true), "mcpServers:\n  a: 3\n", `server "a" is not an object`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := test.edit.Apply(test.file, []byte(test.in))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q, %v; want an error with %q", out, err, test.want)
			}
		})
	}
}

func FuzzEdit(f *testing.F) {
	for _, text := range []string{"", "mcpServers:\n  a:\n    command: q\n# c\nenv: {}\n", `{"mcpServers": {"a": {"command": "q"},}, /* c */}`, "mcpServers: {a: {command: q}}", "a: &x {b: c}\nmcpServers: {a: *x}"} {
		f.Add([]byte(text), true, uint8(0))
		f.Add([]byte(text), false, uint8(1))
		f.Add([]byte(text), false, uint8(2))
		f.Add([]byte(text), false, uint8(3))
		f.Add([]byte(text), true, uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool, kind uint8) {
		file := "s.yaml"
		if isJSON {
			file = "s.json"
		}
		if kind%4 == 3 {
			set := Set{Paths: [][]string{{"a", "b"}}, Value: json.RawMessage(`[1,"x"]`)}
			if out, err := set.Apply(file, data); err == nil {
				if doc, problems := document.Parse(file, out); len(problems) > 0 || string(doc.Root.Get("a").Get("b").JSON()) != `[1,"x"]` {
					t.Fatalf("%q became %q: %v", data, out, problems)
				}
			}
			return
		}
		e := []Change{add("new"), {Name: "a", Drop: true}, turn("a", true)}[kind%4]
		out, err := e.Apply(file, data)
		if err != nil {
			return
		}
		after, problems := document.Parse(file, out)
		if len(problems) > 0 {
			t.Fatalf("%q became %q: %v", data, out, problems)
		}
		has := after.Root.Get(table.ServersKey).Get(e.Name) != nil
		if has == e.Drop {
			t.Fatalf("%q became %q", data, out)
		}
	})
}

func TestFileReplacesAtomically(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "settings.yaml")
	change := func(old []byte) ([]byte, error) { return add("x").Apply(path, old) }
	if err := File("", path, change); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := File("", link, func(old []byte) ([]byte, error) { return turn("x", true).Apply(link, old) }); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	data, _ := os.ReadFile(path)
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 || !strings.Contains(string(data), "disabled: true") {
		t.Errorf("mode %v, %q", info.Mode(), data)
	}
	failed := errors.New("no")
	if err := File("", path, func([]byte) ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(data) {
		t.Errorf("a failed change left %q", after)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestFileChangedMeanwhileIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	const theirs = "env: {A: b}\n"
	err := File("", path, func([]byte) ([]byte, error) {
		return []byte("mcpServers: {}\n"), os.WriteFile(path, []byte(theirs), 0o600)
	})
	if err == nil || !strings.Contains(err.Error(), "another program has changed it in the meantime") {
		t.Errorf("error %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != theirs {
		t.Errorf("the file became %q", data)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// A folder that cannot be created is named in whole, whether or not the file is a project's.
func TestFolderThatCannotBeCreated(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "file", "a")
	for _, in := range []string{root, ""} {
		err := Create(in, filepath.Join(dir, "s.yaml"), nil, 0o600, 0o700)
		if want := "creating " + dir + ": "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Create in %q: %v, want %q", in, err, want)
		}
	}
}
