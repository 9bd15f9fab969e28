//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// writesTwo is a script with two questions, the first of which it handles.
const writesTwo = `r = call("write_file", {"file_path": "one.txt", "content": "1"})
tools.write_file(file_path = "two.txt", content = "2")
result = r.category`

// The host of toolreg rpc is asked about each call of a script, with its place. A no reaches
// the script.
func TestRPCAsksWithinScripts(t *testing.T) {
	dir, command := inProject(t)
	h := startRPC(t, command("rpc"), "approve")
	h.answer = func(m rpcMessage) any {
		if strings.Contains(m.get("text"), "one.txt") {
			return map[string]string{"choice": "no"}
		}
		return map[string]string{"choice": "yes"}
	}
	got := h.call("answer", map[string]any{"format": "anthropic", "response": map[string]any{"role": "assistant", "stop_reason": "tool_use",
		"content": []any{map[string]any{"type": "tool_use", "id": "c1", "name": "run_script", "input": map[string]string{"script": writesTwo}}}}})
	if got.Error != nil || !strings.Contains(got.get("messages"), `"denied"`) {
		t.Errorf("%s %+v", got.Result, got.Error)
	}
	var asked []string
	for _, m := range h.told {
		if m.Method == "approve" {
			asked = append(asked, m.get("tool")+" "+m.get("callId"))
			if place := []string{"script:1:9", "script:2:17"}[(len(asked)-1)%2]; !strings.Contains(m.get("text"), place) {
				t.Errorf("the question does not name %s: %s", place, m.get("text"))
			}
		}
	}
	if strings.Join(asked, ", ") != "write_file c1, write_file c1" {
		t.Errorf("asked about %q", asked)
	}
	checkWritten(t, dir)
}

// So is the client of toolreg serve --expose scripts.
func TestServeAsksWithinScripts(t *testing.T) {
	dir, command := inProject(t)
	var asked []string
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, r.Params.Message)
			answer := "yes"
			if len(asked) == 1 {
				answer = "no"
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": answer}}, nil
		}})
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: command("serve", "--expose", "scripts")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "run_script" {
		t.Fatalf("%+v %v", list, err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_script", Arguments: map[string]any{"script": writesTwo}})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := result.Content[0].(*mcp.TextContent); result.IsError || text == nil || text.Text != "denied" {
		t.Errorf("%+v", result.Content[0])
	}
	if len(asked) != 2 || !strings.Contains(asked[0], "script:1:9") || !strings.Contains(asked[1], "script:2:17") {
		t.Errorf("asked %q", asked)
	}
	checkWritten(t, dir)
}

// checkWritten checks that the second file was written and the first one was not.
func checkWritten(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "one.txt")); err == nil {
		t.Error("one.txt was written after a no")
	}
	if _, err := os.Stat(filepath.Join(dir, "two.txt")); err != nil {
		t.Error(err)
	}
}

// If a host declares run_script and named tools, scripts can call those alone.
func TestRPCDeclareBindsScripts(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "a.txt", "hello\n")
	writeFile(t, dir, "s.yaml", "scripts: true\n")
	h := startRPC(t, command("--settings", "s.yaml", "rpc"))
	for _, step := range []struct {
		tools, declared []string
		want            string // of the script
	}{
		{[]string{"run_script", "glob"}, []string{"def glob("}, `There is no tool \"read_file\"`},
		{[]string{"run_script"}, []string{"def glob(", "def read_file("}, `hello`},
	} {
		m := h.call("declare", map[string]any{"format": "openai", "tools": step.tools})
		for _, name := range []string{"def glob(", "def read_file("} {
			if strings.Contains(string(m.Result), name) != slices.Contains(step.declared, name) {
				t.Errorf("%q: %s %+v", step.tools, m.Result, m.Error)
			}
		}
		response := responses(t, []string{"run_script"}, []string{`{"script":"result = tools.read_file(file_path = 'a.txt')"}`})["openai"]
		m = h.call("answer", map[string]any{"format": "openai", "response": json.RawMessage(response)})
		if !strings.Contains(string(m.Result), step.want) {
			t.Errorf("%q: %s %+v", step.tools, m.Result, m.Error)
		}
	}
}
