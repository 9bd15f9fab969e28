package mcptest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	marker, pidFile := filepath.Join(dir, "marker"), filepath.Join(dir, "pid")
	tests := []struct {
		name       string
		args       []string
		code       int
		out, noise string
	}{
		{name: "ends with stdin"},
		{name: "exits at once", args: []string{"--banner", `a\nb`, "--stderr", "oops", "--exit", "7"}, code: 7, out: "a\nb\n", noise: "oops\n"},
		{name: "leaves marks", args: []string{"--marker", marker, "--pidfile", pidFile, "--exit", "0"}},
		{name: "hangs until stdin ends", args: []string{"--hang"}},
		{name: "unknown flag", args: []string{"--nope"}, code: 1, noise: "flag provided but not defined: -nope"},
		{name: "argument", args: []string{"x"}, code: 1, noise: `unexpected argument "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, noise bytes.Buffer
			if code := Run(tt.args, strings.NewReader(""), &out, &noise); code != tt.code {
				t.Errorf("code %d", code)
			}
			if out.String() != tt.out || !strings.Contains(noise.String(), tt.noise) {
				t.Errorf("stdout %q, stderr %q", out.String(), noise.String())
			}
		})
	}
	for _, path := range []string{marker, pidFile} {
		if data, err := os.ReadFile(path); err != nil || len(data) == 0 {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

// TestTools tests the server with the SDK's own client, so that failures in
// other tests are not this server's fault.
func TestTools(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	code := make(chan int, 1)
	go func() { code <- Run([]string{"--extras"}, in, out, io.Discard) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 11 {
		t.Errorf("%d tools, %v", len(list.Tools), err)
	}
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1, "b": 2}})
	if err != nil || r.Content[0].(*mcp.TextContent).Text != `{"sum":3}` {
		t.Errorf("add: %+v, %v", r, err)
	}
	if err := toServer.Close(); err != nil {
		t.Error(err)
	}
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
	_ = fromServer.Close()
	_ = session.Close()
}
