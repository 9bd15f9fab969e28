//go:build unix

package discover

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// executeCase is what the Gemini CLI's registry made of one call.
type executeCase struct {
	Name, CallCommand, Tool string
	Files                   map[string]string
	Params                  json.RawMessage
	ParamsText              string
	Want                    struct {
		LLMContent json.RawMessage
		Rejects    json.RawMessage
	}
}

// betterExecute holds the results that differ from the reference on purpose.
func betterExecute() map[string]string {
	return map[string]string{
		// A signal that Node has no name for read as success.
		"signal/real-time-34": "Stdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: (none)\nSignal: SIG34",
		// Decoded as a whole, not chunk by chunk.
		"decode/emoji-split-over-writes": "\U0001F600",
		// The command is split into words; there the whole line was one program.
		"spawn/npm-run-call-tool": "npm run call-tool my_tool\n",
		"spawn/node-script":       "node call.js my_tool\n",
		"spawn/quoted":            "hi\n",
	}
}

func TestExecuteVectors(t *testing.T) {
	var vectors struct{ Cases []executeCase }
	readVectors(t, "execute.json", &vectors)
	differ := betterExecute()
	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) { checkExecute(t, c, differ) })
	}
}

func checkExecute(t *testing.T, c executeCase, differ map[string]string) {
	dir := t.TempDir()
	for name, content := range c.Files {
		writeFile(t, dir, name, content)
	}
	for _, name := range []string{"npm", "node"} { // says how it was called
		writeFile(t, dir, "bin/"+name, "#!/bin/sh\necho "+name+" \"$@\"\n")
	}
	source := &command{opts: CommandOptions{
		Call: callCommand(t, c, dir), ProjectRoot: dir, Limits: Limits{}.orDefault(),
		Env:    []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")},
		Expand: func(cmd settings.Command) ([]string, error) { return cmd.Argv, nil },
	}}
	tool := source.tool(&declaration{original: c.Tool, definition: registry.Definition{Name: c.Tool}}, running{})
	var compact bytes.Buffer
	if err := json.Compact(&compact, c.Params); c.Params != nil && err != nil {
		t.Fatal(err)
	}
	params := json.RawMessage(compact.Bytes())
	if c.ParamsText != "" {
		params = json.RawMessage(c.ParamsText)
	}
	got, err := tool.Run(t.Context(), registry.Call{Tool: c.Tool, Params: params})
	switch {
	case c.Name == "spawn/nul-in-name":
		// There the promise is rejected; here it is a call that failed.
		if err != nil || !got.IsError || !strings.Contains(got.Text(), "\nError: starting ") || !strings.Contains(got.Text(), "NUL byte") {
			t.Errorf("result %q, %v", got.Text(), err)
		}
	case c.Want.Rejects != nil:
		if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "toolCallCommand is not set") {
			t.Errorf("error %v", err)
		}
	case err != nil:
		t.Fatal(err)
	case strings.HasPrefix(c.Name, "input/params-"):
		// The params go through byte for byte; there they were written anew,
		// which reordered integer keys and dropped duplicates. The executor
		// refuses the latter before.
		if got.Text() != string(params) {
			t.Errorf("the program read %q, not %q", got.Text(), params)
		}
	default:
		want := wantText(t, c, dir)
		if b, ok := differ[c.Name]; ok {
			want = b
		}
		if diff := cmp.Diff(want, sameWording(got.Text())); diff != "" {
			t.Errorf("text (-want +got):\n%s", diff)
		}
		report := strings.HasPrefix(want, "Stdout: ")
		onlyStderr := report && strings.Contains(want, "\nExit Code: 0\n")
		if got.IsError != (report && !onlyStderr) {
			t.Errorf("IsError = %v for %q", got.IsError, want)
		}
	}
}

// callCommand makes the setting. The reference takes a line as one program,
// whatever it holds.
func callCommand(t *testing.T, c executeCase, dir string) settings.Command {
	line := fill(c.CallCommand, dir)
	switch {
	case line == "":
		return settings.Command{}
	case c.Name == "spawn/path-with-space-works":
		// Split into words the space needs quotes, or a list.
		return settings.Command{Argv: []string{line}}
	}
	return commandLine(t, line)
}

func wantText(t *testing.T, c executeCase, dir string) string {
	t.Helper()
	var long struct {
		Length int
		All    string
	}
	if json.Unmarshal(c.Want.LLMContent, &long) == nil {
		return strings.Repeat(long.All, long.Length)
	}
	var text string
	if err := json.Unmarshal(c.Want.LLMContent, &text); err != nil {
		t.Fatal(err)
	}
	return sameWording(fill(text, dir))
}

// sameWording replaces what follows "Error: ", whose wording is our own.
func sameWording(report string) string {
	before, rest, ok := strings.Cut(report, "\nError: ")
	what, after, _ := strings.Cut(rest, "\n")
	if !ok || what == "(none)" {
		return report
	}
	return before + "\nError: …\n" + after
}
