package commands_test

import (
	"encoding/json"
	"fmt"
)

// The ways in which a call can be made.

func byCall(_ *world, a attempt) ([]string, string) {
	return []string{"call", a.tool, "--params", a.params, "--non-interactive"}, ""
}

func byFormat(_ *world, a attempt) ([]string, string) {
	return []string{"call", "--format", "openai", "--non-interactive"}, fmt.Sprintf(
		`{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":%q,"arguments":%q}}]}}]}`, a.tool, a.params)
}

func byBatch(_ *world, a attempt) ([]string, string) {
	return []string{"call", "--batch", "--non-interactive"}, fmt.Sprintf(`{"name":%q,"params":%s}`, a.tool, a.params)
}

// byCallTool calls by the tool with which models reach tools that are not declared.
func byCallTool(_ *world, a attempt) ([]string, string) {
	return []string{"call", "call_tool", "--non-interactive", "--params", fmt.Sprintf(`{"name":%q,"params":%s}`, a.tool, a.params)}, ""
}

func byRPC(_ *world, a attempt) ([]string, string) {
	return []string{"rpc", "--non-interactive"}, lines(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"client":{"name":"host"}}}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"call","params":{"tool":%q,"params":%s}}`, a.tool, a.params))
}

func byServe(w *world, a attempt) ([]string, string) { return byServeWith()(w, a) }

// byServeWith calls through serve with flags.
func byServeWith(flags ...string) func(*world, attempt) ([]string, string) {
	return func(_ *world, a attempt) ([]string, string) {
		return append([]string{"serve"}, flags...), conversation(a)
	}
}

// conversation returns what an MCP client sends to make a call.
func conversation(a attempt) string {
	return lines(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, a.tool, a.params))
}

func byScript(w *world, a attempt) ([]string, string) {
	var params map[string]any
	if err := json.Unmarshal([]byte(a.params), &params); err != nil {
		w.t.Fatal(err)
	}
	w.write("project/script.star", fmt.Sprintf("def main(params):\n    return call(%q, %s)\n", a.tool, a.params))
	return []string{"run", "script.star", "--non-interactive"}, ""
}

func lines(all ...string) string {
	out := ""
	for _, line := range all {
		out += line + "\n"
	}
	return out
}
