package mcpclient

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// serverDir is the folder of mcp-testserver.
var serverDir string

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == keeperRole {
		if KeepServer(context.Background(), os.Stdin, func(error) error { return os.Stdout.Close() }, nil) != nil {
			syscall.Exit(1)
		}
		syscall.Exit(0) // with the race detector, os.Exit takes a second
	}
	var err error
	if serverDir, err = mcptest.Build(); err != nil {
		log.Fatal(err)
	}
	// The sessions of HTTP test servers that are never closed.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(serverDir)
		os.Exit(code)
	}), goleak.IgnoreTopFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}

// stdioServer returns the settings of the server of mcptest with flags.
func stdioServer(t testing.TB, flags ...string) settings.Server {
	t.Helper()
	return settings.Server{
		Name: "test", Command: filepath.Join(serverDir, "mcp-testserver"), Args: flags, Timeout: time.Minute, ConnectTimeout: 20 * time.Second,
	}
}

// source returns a Source of a server that is closed with the test.
func source(t *testing.T, server settings.Server, change ...func(*Options)) *Source {
	t.Helper()
	dir := t.TempDir()
	opts := Options{Server: server, ProjectRoot: dir, Workspace: dir, Environ: os.Environ()}
	for _, f := range change {
		f(&opts)
	}
	s := New(opts)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// discovered returns the tools by name and the diagnostics of a server.
func discovered(t *testing.T, s *Source) (map[string]registry.Tool, []registry.Diagnostic) {
	t.Helper()
	tools, diags, err := s.Discover(t.Context())
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	byName := map[string]registry.Tool{}
	for _, tool := range tools {
		byName[tool.ServerTool] = tool
	}
	return byName, diags
}

// run calls a tool and fails the test on a Go error.
func run(t *testing.T, tools map[string]registry.Tool, name, params string) registry.Result {
	t.Helper()
	tool, ok := tools[name]
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	r, err := tool.Run(t.Context(), registry.Call{Tool: name, Params: json.RawMessage(params)})
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return r
}

// step is an action of a scripted server when it receives a method.
type step = mcptest.Step

// The handshake of a well-behaved legacy server, for scripts.
var (
	refuseProbe = step{On: "server/discover", Print: []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}`}}
	shakeHands  = step{On: "initialize", Print: []string{
		`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"version":"0.1","name":"script","x":12345678901234567891}}}`}}
	sayModern = step{On: "server/discover", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`}}
)

// listing answers tools/list with tools.
func listingOf(tools string) step {
	return step{On: "tools/list", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"tools":[` + tools + `]}}`}}
}

// oneTool is a list of the tool "t".
const oneTool = `{"name":"t","inputSchema":{"type":"object"}}`

// answer answers tools/call with a result.
func answer(result string) step {
	return step{On: "tools/call", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":` + result + `}`}}
}

// scripted returns the settings of a server that follows steps.
func scripted(t *testing.T, steps ...step) settings.Server {
	t.Helper()
	data, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return stdioServer(t, "--steps", path)
}

// legacy returns the settings of a scripted server with a correct handshake and
// listing, followed by steps.
func legacy(t *testing.T, steps ...step) settings.Server {
	t.Helper()
	return scripted(t, append([]step{refuseProbe, shakeHands, listingOf(oneTool)}, steps...)...)
}

func said(r registry.Result) string { return r.Text() }

// waitForFile returns when the file exists.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Errorf("%s never came", path)
			return
		}
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

// generationOf returns how a server was reached, as in [Known].
func generationOf(s *Source) string {
	if sess := s.pool.shared(); sess != nil {
		return sess.generation()
	}
	return ""
}
