//go:build unix

package discover

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// discoveryVectors are recorded results of Gemini CLI's registry for the output of
// discovery commands.
type discoveryVectors struct {
	CallCommand, EmitScript, ArgvScript, Appendix string
	Cases                                         []discoveryCase
}

type discoveryCase struct {
	Name, Stdout, Stderr, Script, DiscoveryCommand string
	Exit                                           int
	StdoutGen                                      *struct {
		Prefix, Unit, Suffix string
		Count                int
	}
	Want struct {
		Tools []struct {
			Name            json.RawMessage
			DescriptionHead string
			Parameters      json.RawMessage
		}
		Argv   []string
		Throws json.RawMessage
	}
}

// better describes the behavior of toolreg where it differs from Gemini CLI on
// purpose.
type better struct {
	names    []string          // the tools it finds
	diags    []string          // codes of diagnostics
	schemas  map[string]string // schemas that differ
	refused  string            // the settings reject the command, with this word in the error
	argv     []string          // the arguments that the command gets
	survives bool              // Gemini CLI rejects all of the output
}

func betterDiscovery() map[string]better {
	return map[string]better{
		// Gemini CLI registers a name that is not a string.
		"items/name-number": {diags: []string{"declaration_skipped"}},
		"items/name-object": {diags: []string{"declaration_skipped"}},
		"items/name-array":  {diags: []string{"declaration_skipped"}},
		// There, a null in a wrapper fails the whole discovery.
		"items/null-in-wrapper-throws": {names: []string{"a", "b"}, diags: []string{"declaration_skipped"}, survives: true},
		// Schemas are sanitized by the Gemini encoder. The registry keeps what the
		// source sent, even if it would break the sanitizer.
		"items/params-anyOf-broken-throws": {names: []string{"a", "t", "b"}, schemas: map[string]string{"t": `{"anyOf":{}}`}, survives: true},
		"items/params-sanitised":           {names: []string{"t"}, schemas: map[string]string{"t": `{"type":"OBJECT","properties":{"n":{"type":"integer","enum":[1,2,null]},"e":{"type":"STRING","format":"email"},"u":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`}},
		// Both schema fields are read.
		"items/parametersJsonSchema-ignored": {names: []string{"t"}, schemas: map[string]string{"t": `{"type":"object","properties":{"x":{"type":"string"}}}`}},
		// Ignored there too, but without a diagnostic.
		"items/inputSchema-ignored": {names: []string{"t"}, diags: []string{"field_ignored", "field_ignored"}},
		"items/params-array":        {names: []string{"t"}, diags: []string{"field_ignored"}},
		"items/description-array":   {names: []string{"t1"}, diags: []string{"field_coerced"}},
		// Skipped items are reported.
		"items/junk-only":            {diags: []string{"declaration_skipped", "declaration_skipped", "declaration_skipped", "declaration_skipped", "declaration_skipped", "declaration_skipped", "declaration_skipped"}},
		"items/nested-array-ignored": {diags: []string{"declaration_skipped", "declaration_skipped", "declaration_skipped"}},
		// Parsers disagree about duplicate keys.
		"raw/duplicate-json-keys-last-wins": {names: []string{}, diags: []string{"tool_quarantined"}},
		"items/nameless-top-level-silent":   {names: []string{"ok"}, diags: []string{"declaration_skipped"}},
		"items/empty-name-in-wrapper":       {names: []string{"ok"}, diags: []string{"declaration_skipped"}},
		"items/array-in-wrapper-warn":       {names: []string{"ok"}, diags: []string{"declaration_skipped"}},
		// The registry replaces tools (conflicts.discovered), not the source.
		"items/duplicate-same-item": {names: []string{"t", "u"}, diags: []string{"name_overwritten"}},
		// Unset variables are errors, as in every setting. There, they are empty.
		"command/args-dollar-unset-to-empty": {argv: []string{"/h", "/h", "a/h.b"}},
		// A # within a word does not begin a comment.
		"command/args-hash-inside-word": {argv: []string{"a#b"}},
		// A command that needs a shell is rejected before it runs.
		"command/unterminated-double": {refused: "quotes"},
		"command/empty-substitution":  {refused: `sh -c`},
		"command/backtick":            {refused: `sh -c`},
		"command/op-pipe":             {refused: `sh -c`},
		"command/op-first":            {refused: `sh -c`},
	}
}

func TestDiscoveryVectors(t *testing.T) {
	var vectors discoveryVectors
	readVectors(t, "discovery.json", &vectors)
	differ := betterDiscovery()
	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) {
			checkDiscovery(t, vectors, c, differ[c.Name])
		})
		delete(differ, c.Name)
	}
	for name := range differ {
		t.Errorf("no case is named %s", name)
	}
}

func checkDiscovery(t *testing.T, v discoveryVectors, c discoveryCase, b better) {
	dir := project(t, v, c)
	line := fill(c.DiscoveryCommand, dir)
	if b.refused != "" {
		if words, err := process.Split(line); err == nil || !strings.Contains(err.Error(), b.refused) {
			t.Errorf("split into %q, %v", words, err)
		}
		return
	}
	src := newCommand(CommandOptions{
		Discovery: commandLine(t, line), Call: commandLine(t, v.CallCommand), Options: Options{ProjectRoot: dir, Env: environ()},
		Expand: values.NewExpander(dir, []string{"HOME=/h"}).Command,
	})
	reg := registry.NewLoader(registry.Options{}).Load(t.Context(), []registry.Source{src}, false)

	failed := reg.Reports()[0].Err
	if c.Want.Throws != nil && !b.survives {
		if !errors.Is(failed, registry.ErrSourceFailed) || !strings.Contains(failed.Error(), "settings.yaml:3") {
			t.Errorf("error %v", failed)
		}
		return
	}
	if failed != nil {
		t.Fatal(failed)
	}
	checkTools(t, v, c, b, line, reg)
	if c.Want.Argv != nil {
		want := c.Want.Argv
		if b.argv != nil {
			want = b.argv
		}
		if diff := cmp.Diff(want, readArgv(t, dir)); diff != "" {
			t.Errorf("arguments (-want +got):\n%s", diff)
		}
	}
}

func checkTools(t *testing.T, v discoveryVectors, c discoveryCase, b better, line string, reg *registry.Registry) {
	type tool struct{ Name, DisplayName, Description, Schema string }
	heads := map[string]tool{}
	var want []tool
	for _, w := range c.Want.Tools {
		var name string
		if json.Unmarshal(w.Name, &name) != nil {
			continue
		}
		heads[name] = tool{Description: w.DescriptionHead, Schema: string(w.Parameters)}
		if b.names == nil {
			want = append(want, tool{Name: name})
		}
	}
	for _, name := range b.names {
		want = append(want, tool{Name: name})
	}
	for i, w := range want {
		h := heads[w.Name]
		schema := h.Schema
		if s, ok := b.schemas[w.Name]; ok {
			schema = s
		}
		if schema == "" {
			schema = "{}"
		}
		appendix := strings.NewReplacer("{{DISCOVERY}}", line, "{{CALL}}", v.CallCommand, "{{NAME}}", w.Name).Replace(v.Appendix)
		want[i] = tool{w.Name, w.Name, h.Description + appendix, strings.ReplaceAll(schema, " ", "")}
	}
	var got []tool
	for _, g := range reg.Tools() {
		got = append(got, tool{g.Name, g.DisplayName, g.Description, string(g.AsSent().InputSchema)})
		if g.Source != "command" {
			t.Errorf("%s comes from %q", g.Name, g.Source)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	var codes []string
	for _, d := range reg.Diagnostics() {
		codes = append(codes, d.Code)
	}
	if diff := cmp.Diff(b.diags, codes); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s\n%+v", diff, reg.Diagnostics())
	}
}

// project writes the files of a case to a folder.
func project(t *testing.T, v discoveryVectors, c discoveryCase) string {
	t.Helper()
	dir := t.TempDir()
	script := c.Script
	switch {
	case script != "":
	case strings.HasPrefix(c.Name, "command/"):
		script = v.ArgvScript
	default:
		script = v.EmitScript
		stdout := c.Stdout
		if g := c.StdoutGen; g != nil {
			stdout = g.Prefix + strings.Repeat(g.Unit, g.Count) + g.Suffix
		}
		writeFile(t, dir, "out", stdout)
		writeFile(t, dir, "err", c.Stderr)
		writeFile(t, dir, "exit", strconv.Itoa(c.Exit))
	}
	writeFile(t, dir, "discover.sh", script)
	return dir
}

func readArgv(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "argv"))
	if err != nil {
		t.Fatal(err)
	}
	argv := strings.Split(string(data), "\x00")
	return argv[:len(argv)-1]
}
