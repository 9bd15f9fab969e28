//go:build unix

package discover

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// executeCase is the recorded result of a call in Gemini CLI's registry.
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

// betterExecute has the results that differ from Gemini CLI's on purpose.
func betterExecute() map[string]string {
	return map[string]string{
		// There, a signal for which Node.js has no name is reported as success.
		"signal/real-time-34": "Stdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: (none)\nSignal: SIG34",
		// Output is decoded as a whole, not in chunks.
		"decode/emoji-split-over-writes": "\U0001F600",
		// The command is split into words; there, the whole line is the name of one
		// program.
		"spawn/npm-run-call-tool": "npm run call-tool my_tool\n",
		"spawn/node-script":       "node call.js my_tool\n",
		"spawn/quoted":            "hi\n",
	}
}

func TestExecuteVectors(t *testing.T) {
	// Behind & of a script the programs that the test starts would inherit that SIGINT is ignored.
	// A caught signal is not ignored in them.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
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
	for _, name := range []string{"npm", "node"} { // a program that prints its arguments
		writeFile(t, dir, "bin/"+name, "#!/bin/sh\necho "+name+" \"$@\"\n")
	}
	source := newCommand(CommandOptions{Call: callCommand(t, c, dir), Options: Options{ProjectRoot: dir,
		Env: []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}}}).(*command)
	tool := source.tool(t.Context(), &declaration{original: c.Tool, definition: registry.Definition{Name: c.Tool}}, running{})
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
		// There, the promise is rejected; here, the call fails.
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
		// The params are passed on byte for byte. There, they are encoded again, which
		// reorders integer keys and removes duplicate keys. Here, the executor rejects
		// duplicate keys.
		if got.Text() != string(params) {
			t.Errorf("the program got %q, want %q", got.Text(), params)
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

// callCommand returns the setting. Gemini CLI treats the whole line as the name of
// one program.
func callCommand(t *testing.T, c executeCase, dir string) settings.Command {
	line := fill(c.CallCommand, dir)
	switch {
	case line == "":
		return settings.Command{}
	case c.Name == "spawn/path-with-space-works":
		// A path with a space has to be written as a list.
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

// sameWording replaces the text after "Error: ", which differs from Gemini CLI's.
func sameWording(report string) string {
	before, rest, ok := strings.Cut(report, "\nError: ")
	what, after, _ := strings.Cut(rest, "\n")
	if !ok || what == "(none)" {
		return report
	}
	return before + "\nError: …\n" + after
}
