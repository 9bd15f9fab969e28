package lock

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

func mcpTool(name, description, schema string) *registry.Tool {
	return &registry.Tool{
		Definition: registry.Definition{Name: name, Source: "mcp:s", Server: "s", ServerTool: name, Description: description, InputSchema: json.RawMessage(schema)},
		Identity:   json.RawMessage(`{"command":"srv"}`),
	}
}

func record(tools ...*registry.Tool) *File {
	var r Recorder
	for _, t := range tools {
		r.Filter(t)
	}
	return r.File()
}

func TestEncode(t *testing.T) {
	const want = `{
  "version": 1,
  "tools": [
    {
      "source": "mcp:s",
      "name": "a",
      "fingerprint": "FP",
      "definition": {
        "description": [
          "one",
          "two <&>"
        ],
        "inputSchema": {
          "n": 1.50,
          "type": "object"
        },
        "behind": {
          "command": "srv"
        }
      }
    },
    {
      "source": "mcp:s",
      "name": "b",
      "fingerprint": "FP",
      "definition": {
        "behind": {
          "command": "srv"
        }
      }
    }
  ]
}
`
	a, b := mcpTool("a", "one\ntwo <&>", `{"type":"object","n":1.50}`), mcpTool("b", "", "")
	file := record(b, a)
	got := string(file.Encode())
	for _, e := range file.Tools {
		got = strings.Replace(got, e.Fingerprint, "FP", 1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again := record(a, b); string(again.Encode()) != string(file.Encode()) {
		t.Error("the file depends on the order of the tools")
	}
	back, err := decode(file.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := Compare(back, file); diff != nil {
		t.Errorf("the file that was written is read differently: %v", diff)
	}
}

func TestCompare(t *testing.T) {
	was := record(mcpTool("same", "x", `{}`), mcpTool("words", "old", `{"type":"object"}`), mcpTool("gone", "", ""))
	now := record(mcpTool("same", "x", `{}`), mcpTool("words", "new", `{"type":"object"}`), mcpTool("fresh", "", ""))
	got := Compare(was, now)
	for i := range got {
		if got[i].Diff != "" {
			if !strings.Contains(got[i].Diff, `-    "old"`) || !strings.Contains(got[i].Diff, `+    "new"`) {
				t.Errorf("the diff does not show the change:\n%s", got[i].Diff)
			}
			got[i].Diff = "shown"
		}
	}
	want := []Change{
		{Kind: Added, Source: "mcp:s", Name: "fresh"},
		{Kind: Changed, Source: "mcp:s", Name: "words", Parts: []string{"description"}, Diff: "shown"},
		{Kind: Removed, Source: "mcp:s", Name: "gone"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Only a tool that is in the file, with another definition, has changed.
func TestChangedParts(t *testing.T) {
	f := record(mcpTool("first", "x", "{}"), mcpTool("words", "old", "{}"))
	for _, tt := range []struct {
		tool *registry.Tool
		want []string
	}{
		{mcpTool("words", "old", "{}"), nil},
		{mcpTool("words", "new", "{}"), []string{"description"}},
		{mcpTool("words", "new", `{"type":"object"}`), []string{"description", "inputSchema"}},
		{mcpTool("unknown", "new", "{}"), nil},
	} {
		if diff := cmp.Diff(tt.want, f.changed(tt.tool)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.tool.Name, diff)
		}
	}
}

func TestFilter(t *testing.T) {
	other := mcpTool("words", "x", "{}")
	other.Identity = json.RawMessage(`{"command":"another"}`)
	forged := record(mcpTool("words", "x", "{}"))
	forged.Tools[0].Fingerprint = "0"
	edited := record(mcpTool("words", "x", "{}"))
	edited.Tools[0].Definition = json.RawMessage(strings.Replace(string(edited.Tools[0].Definition), `"x"`, `"harmless"`, 1))
	escaped := record(mcpTool("words", "x", "{}"))
	escaped.Tools[0].Definition = json.RawMessage(strings.Replace(string(escaped.Tools[0].Definition), `"x"`, ` "\u0078"`, 1))
	tests := []struct {
		name   string
		file   *File
		tool   *registry.Tool
		reason string
	}{
		{"as locked", record(mcpTool("words", "x", "{}")), mcpTool("words", "x", "{}"), ""},
		{"key order", record(mcpTool("words", "x", `{"a":1,"b":2}`)), mcpTool("words", "x", `{"b":2,"a":1}`), ""},
		{"another description", record(mcpTool("words", "x", "{}")), mcpTool("words", "y", "{}"), "it changed since it was locked: description"},
		{"another server command", record(mcpTool("words", "x", "{}")), other, "it changed since it was locked: command or server"},
		{"unknown", record(), mcpTool("words", "x", "{}"), "it is not in toolreg.lock"},
		{"a fingerprint that does not match the definition", forged, mcpTool("words", "x", "{}"), "it changed since it was locked: fingerprint"},
		{"a definition that does not match the fingerprint", edited, mcpTool("words", "x", "{}"), "it changed since it was locked: description"},
		{"the same text with escapes", escaped, mcpTool("words", "x", "{}"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var drifted []registry.Diagnostic
			hidden := tt.file.filter(func(d registry.Diagnostic) { drifted = append(drifted, d) }, true)(tt.tool)
			switch {
			case tt.reason == "" && (hidden != nil || len(drifted) > 0):
				t.Errorf("refused: %v", hidden)
			case tt.reason != "" && (hidden == nil || hidden.Reason != tt.reason || len(drifted) != 1):
				t.Errorf("got %v and %v, want the reason %q", hidden, drifted, tt.reason)
			}
		})
	}
}

func TestRead(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"damaged", `{"version":1,`, "damaged"},
		{"a list", `[]`, "it is damaged: it is a list, not an object"},
		{"wrong type", `{"version":1,"tools":5}`, `it is damaged: "tools" is a number, not a list`},
		{"key twice", `{"version":1,"tools":[],"tools":[]}`, "damaged"},
		{"later format", `{"version":2,"tools":[]}`, "version 2"},
		{"tool twice", `{"version":1,"tools":[{"source":"s","name":"n"},{"source":"s","name":"n"}]}`, "twice"},
		{"empty", ``, "damaged"},
		{"not there", "-", "does not exist"},
		{"a folder", "/", "not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var err error
			switch path := filepath.Join(dir, Name); tt.content {
			case "-":
			case "/":
				err = os.Mkdir(path, 0o777)
			default:
				err = os.WriteFile(path, []byte(tt.content), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, fs.ErrNotExist) != (tt.content == "-") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second replaces the first
		if err := Write(dir, record(mcpTool("a", "", "")).Encode()); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Read(dir)
	if err != nil || len(f.Tools) != 1 {
		t.Fatalf("read back %v, %v", f, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := Write(filepath.Join(dir, "nowhere"), nil); err == nil {
		t.Error("writing to a folder that does not exist succeeded")
	}
}

func TestLargeFile(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, Name), 64<<20+1); err != nil { // sparse
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "larger than the limit") {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := decode(make([]byte, 64<<20)); err == nil || strings.Contains(err.Error(), "larger than the limit") {
		t.Errorf("a file that is just not too large: %v", err)
	}
}

// overridden returns a tool with an entry of the setting overrides; "" for none.
func overridden(entry string, personal bool) *registry.Tool {
	t := mcpTool("words", "x", "{}")
	if entry != "" {
		t.Reshaped = &registry.Reshaped{Upstream: t.Definition, Override: json.RawMessage(entry), Shown: json.RawMessage(entry), Personal: personal}
	}
	return t
}

func TestOverrideFilter(t *testing.T) {
	const entry, other = `{"description":"short"}`, `{"description":"long"}`
	locked := func(entry string) *File {
		r := Recorder{All: true}
		r.Filter(overridden(entry, false))
		r.Override(overridden(entry, false), "words")
		return r.File()
	}
	edited := locked(entry)
	edited.Tools[0].Override.Entry = json.RawMessage(other)
	for _, tt := range []struct {
		name   string
		file   *File
		tool   *registry.Tool
		reason string
	}{
		{"none", locked(""), overridden("", false), ""},
		{"as locked", locked(entry), overridden(entry, false), ""},
		{"as locked, by the user", locked(entry), overridden(entry, true), ""},
		{"not locked, in the project", locked(""), overridden(entry, false), "its override is not in toolreg.lock"},
		{"not locked, by the user", locked(""), overridden(entry, true), ""},
		{"changed", locked(entry), overridden(other, false), "its override changed since it was locked"},
		{"changed by the user", locked(entry), overridden(other, true), "its override changed since it was locked"},
		{"missing", locked(entry), overridden("", false), "its override in toolreg.lock no longer exists"},
		{"a text that is not of the fingerprint", edited, overridden(entry, false), "its override changed since it was locked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told []registry.Diagnostic
			hidden := tt.file.overrideFilter(func(d registry.Diagnostic) { told = append(told, d) })(tt.tool, "words")
			switch {
			case tt.reason == "" && (hidden != nil || len(told) > 0):
				t.Errorf("refused: %v", hidden)
			case tt.reason != "" && (hidden == nil || hidden.Reason != tt.reason || len(told) != 1 || !strings.Contains(told[0].Message, tt.reason)):
				t.Errorf("got %v and %v, want the reason %q", hidden, told, tt.reason)
			}
		})
	}
}

// An override of the user's own settings is not for others, unless it is locked already
// or everything is to be locked.
func TestWhichOverridesAreRecorded(t *testing.T) {
	const entry = `{"description":"short"}`
	locked := Recorder{All: true}
	locked.Filter(overridden(entry, true))
	locked.Override(overridden(entry, true), "words")
	for _, tt := range []struct {
		name string
		r    Recorder
		tool *registry.Tool
		want bool
	}{
		{"the project's", Recorder{}, overridden(entry, false), true},
		{"the user's", Recorder{}, overridden(entry, true), false},
		{"the user's, with all", Recorder{All: true}, overridden(entry, true), true},
		{"the user's, that is locked", Recorder{Was: locked.File()}, overridden(entry, true), true},
		{"the user's, of a tool that is locked without", Recorder{Was: record(mcpTool("words", "x", "{}"))}, overridden(entry, true), false},
		{"none", Recorder{All: true}, overridden("", false), false},
	} {
		tt.r.Filter(tt.tool)
		tt.r.Override(tt.tool, "words")
		if got := tt.r.File().Tools[0].Override != nil; got != tt.want {
			t.Errorf("%s: recorded %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestCompareSaysWhenAnOverrideChanged(t *testing.T) {
	file := func(entry string) *File {
		var r Recorder
		r.Filter(overridden(entry, false))
		r.Override(overridden(entry, false), "words")
		return r.File()
	}
	for _, tt := range []struct{ name, was, now, diff string }{
		{"changed", `{"description":"old"}`, `{"description":"new"}`, "-  \"description\": \"old\"\n+  \"description\": \"new\"\n"},
		{"added", "", `{"description":"new"}`, "+override: {\n"},
		{"removed", `{"description":"old"}`, "", "-override: {\n"},
	} {
		got := Compare(file(tt.was), file(tt.now))
		if len(got) != 1 || len(got[0].Parts) != 1 || got[0].Parts[0] != registry.PartOverride || !strings.Contains(got[0].Diff, tt.diff) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if got := Compare(file(`{"a":1}`), file(`{"a":1}`)); got != nil {
		t.Errorf("the same: %+v", got)
	}
}

func TestEntriesOfATool(t *testing.T) {
	e := Entry{Source: "mcp:s", Name: "a", Version: "2"}
	for _, tt := range []struct {
		tool registry.Definition
		want bool
	}{
		{registry.Definition{Source: "mcp:s", Name: "a", Version: "2"}, true},
		{registry.Definition{Source: "mcp:t", Name: "a", Version: "2"}, false},
		{registry.Definition{Source: "mcp:s", Name: "b", Version: "2"}, false},
		{registry.Definition{Source: "mcp:s", Name: "a", Version: "1"}, false},
	} {
		if got := e.Is(&registry.Tool{Definition: tt.tool}); got != tt.want {
			t.Errorf("%+v: %t", tt.tool, got)
		}
	}
	plain, command := Entry{Source: "mcp:s", Name: "a"}, Entry{Source: "command", Name: "a"}
	for _, tt := range []struct {
		entry Entry
		name  string
		want  bool
	}{
		{e, "a", true}, {e, "a@2", true}, {e, "s__a", true}, {e, "s__*", true}, {e, "?", true},
		{e, "a@1", false}, {e, "s", false}, {e, "t__a", false},
		{plain, "a", true}, {plain, "s__a", true}, {plain, "a@", false},
		{command, "a", true}, {command, "command__a", false}, {command, "__a", false},
	} {
		if got := tt.entry.IsNamed("other", tt.name); got != tt.want {
			t.Errorf("%q names %+v: %t", tt.name, tt.entry, got)
		}
	}
}

func TestKeepOver(t *testing.T) {
	older, f := record(mcpTool("a", "old", ""), mcpTool("b", "old", ""), mcpTool("c", "old", "")), record(mcpTool("b", "new", ""), mcpTool("d", "new", ""))
	f.KeepOver(older, func(e *Entry) bool { return e.IsNamed("b", "c") })
	var got []string
	for _, e := range f.Tools {
		got = append(got, e.Name+string(e.parts()["description"]))
	}
	if diff := cmp.Diff([]string{`a["old"]`, `b["new"]`}, got); diff != "" {
		t.Errorf("b and c are written anew (-want +got):\n%s", diff)
	}
}

// A tool that is locked anew without an override keeps the one that the older file has.
func TestKeepOverrides(t *testing.T) {
	older, f := record(mcpTool("a", "x", ""), mcpTool("b", "x", "")), record(mcpTool("a", "x", ""), mcpTool("b", "x", ""), mcpTool("c", "x", ""))
	was, now := &Override{}, &Override{}
	older.Tools[0].Override, older.Tools[1].Override, f.Tools[1].Override = was, was, now
	f.KeepOverrides(older)
	if f.Tools[0].Override != was || f.Tools[1].Override != now || f.Tools[2].Override != nil {
		t.Errorf("%+v", f.Tools)
	}
}
