// Package providers_test feeds what toolreg prints for a provider into the
// types of that provider's own SDK, and checks what the types leave open
// against the published rules. It is a module of its own, so that none of the
// SDKs is part of the program.
//
// The tools are those that published MCP servers list (testdata/servers) and
// hand-made nasty ones, given by real servers to the real program.
package providers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bench is what the tests work with.
type bench struct {
	dir      string // holds the programs and the settings
	url      string // of the servers
	settings string
	captures []capture // in settings order
}

// capture is what one server lists.
type capture struct {
	Package, Version, License string
	Tools                     []capturedTool

	server string // its name in the settings
	file   string
}

type capturedTool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// shared is made by TestMain and not changed afterwards.
var shared bench

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if shared.dir, err = os.MkdirTemp("", "providers"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(shared.dir)
	build := exec.Command("go", "build", "-o", shared.dir, "./cmd/toolreg", "./testdata/servers")
	build.Dir = filepath.Join("..", "..")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("building toolreg and the servers: %w", err)
	}
	if shared.captures, err = readCaptures(); err != nil {
		return 1, err
	}
	stop, err := shared.serve()
	if err != nil {
		return 1, err
	}
	defer stop()
	shared.settings = filepath.Join(shared.dir, "all.json")
	if err := writeSettings(shared.settings, shared.url, shared.captures); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// serve starts the servers, which end with this process at the latest.
func (b *bench) serve() (stop func(), err error) {
	cmd := exec.Command(filepath.Join(b.dir, "servers"))
	for _, c := range b.captures {
		cmd.Args = append(cmd.Args, c.file)
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("starting the servers: %w", err)
	}
	b.url = strings.TrimSpace(line)
	return stop, nil
}

func (b *bench) program() string { return filepath.Join(b.dir, "toolreg") }

// readCaptures reads the published servers, and behind them the nasty one.
func readCaptures() ([]capture, error) {
	files, err := filepath.Glob(filepath.Join("..", "servers", "*.json"))
	if err != nil || len(files) < 12 {
		return nil, fmt.Errorf("found %d servers: %w", len(files), err)
	}
	out := make([]capture, 0, len(files)+1)
	for _, file := range append(files, "nasty.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c := capture{server: strings.TrimSuffix(filepath.Base(file), ".json"), file: file}
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// writeSettings names the servers in their order, the one for results apart.
func writeSettings(file, url string, captures []capture) error {
	var b strings.Builder
	b.WriteString(`{"mcpServers":{`)
	for i, c := range captures {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `%q:{"httpUrl":%q}`, c.server, url+"/"+c.server)
	}
	b.WriteString("}}")
	kinds := fmt.Sprintf(`{"mcpServers":{"kinds":{"httpUrl":%q}}}`, url+"/kinds")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "kinds.json"), []byte(kinds), 0o600); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}

// toolreg runs the program over a settings file and returns its stdout.
func toolreg(t *testing.T, settings, stdin string, args ...string) []byte {
	t.Helper()
	return toolregIn(t.Context(), t, settings, stdin, args...)
}

func toolregIn(ctx context.Context, t *testing.T, settings, stdin string, args ...string) []byte {
	t.Helper()
	home := filepath.Join(shared.dir, "home")
	cmd := exec.CommandContext(ctx, shared.program(), append([]string{"--settings", settings, "--quiet"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home, "NO_PROXY=127.0.0.1")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && !(slices.Contains(args, "--lint") && cmd.ProcessState.ExitCode() == 9) { // it found errors
		t.Fatalf("toolreg %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// declarations runs schema and returns its list of declarations.
func declarations(t *testing.T, format string, args ...string) []json.RawMessage {
	t.Helper()
	var list []json.RawMessage
	out := toolreg(t, shared.settings, "", append([]string{"schema", "--format", format, "--source", "mcp:*"}, args...)...)
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v: %.300s", err, out)
	}
	return list
}

// decode reads data into the type of an SDK and writes it again: what the type
// does not know would be lost on the way, which is an error.
func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the SDK does not read it: %w", err)
	}
	again, err := json.Marshal(into)
	if err != nil {
		return fmt.Errorf("the SDK does not write it: %w", err)
	}
	return equal(data, again)
}

// equal compares JSON by value.
func equal(want, got []byte) error {
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		return err
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return err
	}
	if path, ok := difference(w, g, ""); ok {
		return fmt.Errorf("the SDK's type has it otherwise at %s:\n ours %.300s\ntheirs %.300s", path, want, got)
	}
	return nil
}

// difference returns where two values first differ.
func difference(want, got any, path string) (string, bool) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return path, true
		}
		keys := maps.Clone(w)
		maps.Copy(keys, g)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			_, inWant := w[k]
			_, inGot := g[k]
			if inWant != inGot {
				return path + "/" + k, true
			}
			if p, differs := difference(w[k], g[k], path+"/"+k); differs {
				return p, true
			}
		}
		return "", false
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return path, true
		}
		for i := range w {
			if p, differs := difference(w[i], g[i], fmt.Sprintf("%s/%d", path, i)); differs {
				return p, true
			}
		}
		return "", false
	}
	return path, want != got
}
