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
)

func add(name string) Change {
	return Change{Name: name, Entry: json.RawMessage(`{"command":"npx","args":["-y","a b"],"env":{"K":"true"}}`)}
}

func turn(name string, off bool) Change { return Change{Name: name, Off: &off} }

func TestEditsTouchNothingElse(t *testing.T) {
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
		{"yaml on", "s.yaml", turn("a", false), "mcpServers:\n  a:\n    command: q\n    disabled: true # for now\n", "mcpServers:\n  a:\n    command: q\n    disabled: false # for now\n"},
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
		{"json remove in one line", "s.json", Change{Name: "a", Drop: true}, `{"mcpServers": {"a": {"command": "q"}, "b": {"command": "r"}}}`, `{"mcpServers": { "b": {"command": "r"}}}`},
		{"json remove a name with marks of pointers", "s.json", Change{Name: "a/b~c", Drop: true}, `{"mcpServers": {"a/b~c": {"command": "q"}, "d": {"command": "r"}}}`, `{"mcpServers": { "d": {"command": "r"}}}`},
		{"json remove with a comma behind the last", "s.json", Change{Name: "b", Drop: true}, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"},\n    /* of b */\n    \"b\": {\"command\": \"r\"}, // too\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"q\"},\n  },\n}\n"},
		{"json off", "s.json", turn("a", true), "{\n  \"mcpServers\": {\n    \"a\": { // why\n      \"command\": \"q\"\n    }\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"disabled\": true, // why\n      \"command\": \"q\"\n    }\n  }\n}\n"},
		{"json on", "s.json", turn("a", false), `{"mcpServers": {"a": {"command": "q", "disabled": true /* now */}}}`, `{"mcpServers": {"a": {"command": "q", "disabled": false /* now */}}}`},
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

func TestEditsThatCannotBe(t *testing.T) {
	tests := []struct {
		name, file string
		edit       Change
		in, want   string
	}{
		{"there already", "s.yaml", add("a"), "mcpServers: {a: {command: q}}", `server is there already: s.yaml has a server "a"`},
		{"not there", "s.json", Change{Name: "b", Drop: true}, `{"mcpServers": {"a": {"command": "q"}}}`, `s.json has no server "b"`},
		{"broken", "s.yaml", add("a"), "x: [\n", "s.yaml:"},
		{"wrong type", "s.yaml", add("a"), "mcpServers: 3\n", "s.yaml:1:13: mcpServers: expected an object, got number"},
		{"shared by an alias", "s.yaml", Change{Name: "a", Drop: true}, "context: {x: &s {a: {command: q}}}\nmcpServers: *s\n", "cannot be edited safely"},
		{"part of another server", "s.yaml", turn("a", true), "mcpServers:\n  a: &x\n    command: q\n  b: *x\n", "cannot be edited safely"},
		{"another server's value", "s.yaml", turn("b", true), "mcpServers:\n  a: &x\n    command: q\n  b: *x\n", "cannot be edited safely"},
		{"no object", "s.yaml", turn("a", true), "mcpServers:\n  a: 3\n", `server "a" is no object`},
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
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool, kind uint8) {
		file := "s.yaml"
		if isJSON {
			file = "s.json"
		}
		e := []Change{add("new"), {Name: "a", Drop: true}, turn("a", true)}[kind%3]
		out, err := e.Apply(file, data)
		if err != nil {
			return
		}
		after, problems := document.Parse(file, out)
		if len(problems) > 0 {
			t.Fatalf("%q became %q: %v", data, out, problems)
		}
		has := after.Root.Get(serversKey).Get(e.Name) != nil
		if has == e.Drop {
			t.Fatalf("%q became %q", data, out)
		}
	})
}

func TestFileReplacesAtOnce(t *testing.T) {
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

func TestAFileThatAnotherChangedIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	const theirs = "env: {A: b}\n"
	err := File("", path, func([]byte) ([]byte, error) {
		return []byte("mcpServers: {}\n"), os.WriteFile(path, []byte(theirs), 0o600)
	})
	if err == nil || !strings.Contains(err.Error(), "somebody else has changed it meanwhile") {
		t.Errorf("error %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != theirs {
		t.Errorf("the file became %q", data)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
