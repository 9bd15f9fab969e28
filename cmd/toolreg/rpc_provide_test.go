//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// weather is a function of a host, as provide takes it.
func weather(category string) map[string]any {
	return map[string]any{"name": "weather", "description": "The weather of a city.", "category": category,
		"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"city": map[string]string{"type": "string"}}, "required": []string{"city"}}}
}

func provided(functions ...map[string]any) map[string]any { return map[string]any{"tools": functions} }

// A function of the host is a tool like others: validated, asked about, denied, hooked, declared,
// found, called by a script, and told to the model.
func TestRPCProvide(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "settings.yaml", `
policy: {rules: [{tool: weather, when: .city == "Rome", decision: deny, reason: not there}]}
scripts: true
`)
	h := startRPC(t, command("--settings", "settings.yaml", "rpc"), "approve")
	var ran, asked []string
	h.answer = func(m rpcMessage) any {
		if m.Method == "approve" {
			asked = append(asked, m.get("tool")+" "+m.get("source"))
			return map[string]string{"choice": "yes"}
		}
		ran = append(ran, m.get("tool")+m.get("params"))
		switch {
		case strings.Contains(m.get("params"), "content"):
			return map[string]any{"content": []map[string]string{{"type": "text", "text": "a block"}}, "isError": true}
		case strings.Contains(m.get("params"), "json"):
			return map[string]any{"degrees": 21}
		}
		if strings.Contains(m.get("params"), "failed") {
			return map[string]any{"degrees": nil, "isError": true}
		}
		return map[string]string{"text": "sunny"}
	}
	if m := h.call("provide", provided(weather(""))); m.get("tools") != `["weather"]` {
		t.Fatalf("provide: %s %v", m.Result, m.Error)
	}
	for city, want := range map[string]string{"Oslo": `"llmContent":"sunny"`, "json": `"structuredContent":{"degrees":21}`, "content": `"isError":true`, "failed": `"isError":true`} {
		if m := h.call("call", tool("weather", map[string]string{"city": city})); !strings.Contains(string(m.Result), want) {
			t.Errorf("%s: %s %v", city, m.Result, m.Error)
		}
	}
	if len(asked) != 4 || asked[0] != "weather host" || len(ran) != 4 {
		t.Errorf("asked %q, ran %q", asked, ran)
	}
	if m := h.call("call", tool("weather", map[string]string{})); m.Error == nil || m.Error.Data.Exit != 4 {
		t.Errorf("without its param: %s", m.Result)
	}
	if m := h.call("call", tool("weather", map[string]string{"city": "Rome"})); m.Error == nil || m.Error.Data.Exit != 5 || !strings.Contains(m.Error.Message, "not there") {
		t.Errorf("what a rule denies: %s %v", m.Result, m.Error)
	}
	if m := h.call("declare", map[string]any{"format": "openai", "tools": "weather"}); !strings.Contains(string(m.Result), `"name":"weather"`) {
		t.Errorf("declare: %s %v", m.Result, m.Error)
	}
	if m := h.call("search", map[string]string{"query": "weather"}); !strings.Contains(string(m.Result), `"source":"host"`) {
		t.Errorf("search: %s %v", m.Result, m.Error)
	}
	response := responses(t, []string{"weather"}, []string{`{"city":"Bonn"}`})["anthropic"]
	if m := h.call("answer", map[string]any{"format": "anthropic", "response": json.RawMessage(response)}); !strings.Contains(string(m.Result), "sunny") {
		t.Errorf("answer: %s %v", m.Result, m.Error)
	}
	script := tool("run_script", map[string]string{"script": "result = [tools.weather(city=c) for c in ['Bonn', 'Kiel']]"})
	if m := h.call("call", script); !strings.Contains(string(m.Result), "sunny") {
		t.Errorf("a script: %s %v", m.Result, m.Error)
	}
	if len(ran) != 7 {
		t.Errorf("ran %q", ran)
	}
}

// A host's tool comes before all others of its name, and provide replaces what was provided before.
func TestRPCProvideNames(t *testing.T) {
	_, command := inProject(t)
	h := startRPC(t, command("rpc"))
	for _, none := range []any{nil, []any{}, map[string]any{}} { // the registry without it
		if m := h.call("list", none); m.Error != nil {
			t.Errorf("no params as %v: %v", none, m.Error)
		}
	}
	mine := map[string]any{"name": "read_file", "description": "Mine.", "category": "read"}
	if m := h.call("provide", provided(mine, weather("read"))); m.get("tools") != `["read_file","weather"]` {
		t.Fatalf("provide: %s %v", m.Result, m.Error)
	}
	if m := h.told[0]; m.Method != "diagnostic" || !strings.Contains(m.get("message"), `"read_file" is left out: the host provides`) {
		t.Errorf("told %s", m.Params)
	}
	if m := h.call("list", map[string]string{"tool": "read_file"}); !strings.Contains(string(m.Result), "Mine.") {
		t.Errorf("list: %s", m.Result)
	}
	if m := h.call("provide", provided(weather(""))); m.get("tools") != `["weather"]` {
		t.Errorf("provide again: %s %v", m.Result, m.Error)
	}
	if m := h.call("list", map[string]string{"tool": "read_file"}); !strings.Contains(string(m.Result), `"source":"builtin"`) {
		t.Errorf("the built-in tool again: %s", m.Result)
	}
	bare := map[string]any{"name": "bare", "description": "No params.", "inputSchema": nil, "outputSchema": nil, "annotations": nil}
	php := map[string]any{"name": "php", "description": "No params.", "inputSchema": []any{}, "outputSchema": []any{}, "annotations": []any{}}
	if m := h.call("provide", provided(bare, php, weather(""))); m.get("tools") != `["bare","php","weather"]` {
		t.Errorf("members that say nothing: %s %v", m.Result, m.Error)
	}
	for _, wrong := range []map[string]any{
		provided(map[string]any{"name": ""}), provided(map[string]any{"name": "a b"}), provided(weather(""), weather("")), {"tools": "weather"}, {"tools": []any{map[string]any{"title": "x"}}},
	} {
		if m := h.call("provide", wrong); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%v: %s %v", wrong, m.Result, m.Error)
		}
	}
	if m := h.call("call", tool("weather", map[string]string{"city": "x"})); m.Error == nil || m.Error.Data.Exit != 6 {
		t.Errorf("a refused provide replaced what was provided: %s %v", m.Result, m.Error)
	}
}

// What the host asks while it answers a run does not wait for that call; what it asked before
// does.
func TestRPCProvideAsksMeanwhile(t *testing.T) {
	dir, command := inProject(t)
	h := startRPC(t, command("--yes", "rpc"))
	h.call("provide", provided(weather("")))
	h.send("first", "call", tool("run_shell_command", map[string]string{"command": "until [ -e begin ]; do sleep 0.01; done"}))
	h.send("outer", "call", tool("weather", map[string]string{"city": "Oslo"}))
	h.send("later", "call", tool("write_file", map[string]string{"file_path": "later", "content": "x"}))
	h.send("unknown", "no such method", nil)
	h.await("unknown") // so the calls before it were read, too
	writeFile(t, dir, "begin", "")
	var run rpcMessage
	for first := false; !first || run.Method == ""; { // in any order
		switch m := h.next(); {
		case m.Method == "run":
			run = m
		case string(m.ID) == `"first"`:
			first = true
		case m.Method == "":
			t.Fatalf("an answer to %s: %s %v", m.ID, m.Result, m.Error)
		}
	}
	h.send("inner", "call", tool("write_file", map[string]string{"file_path": "inner", "content": "x"}))
	h.await("inner")
	if _, err := os.Stat(filepath.Join(dir, "later")); err == nil {
		t.Error("a call that arrived before has passed the one that waits for the host")
	}
	h.reply(run, map[string]string{"text": "sunny"})
	h.awaitAll("outer", "later")

	// A canceled call tells the host.
	h.send("long", "call", tool("weather", map[string]string{"city": "Oslo"}))
	run = h.until("run")
	h.write(`{"jsonrpc":"2.0","method":"cancel","params":{"id":"long"}}`)
	if m := h.await("long"); m.Error == nil || m.Error.Code != -32800 {
		t.Errorf("the canceled call: %s", m.Result)
	}
	if told := h.told[len(h.told)-1]; told.Method != "cancel" || told.get("callId") != "long" {
		t.Errorf("told %s %s", told.Method, told.Params)
	}
	h.reply(run, map[string]string{"text": "too late"})
	h.write(rpcLine(t, map[string]any{"jsonrpc": "2.0", "id": "x", "method": "call", "params": tool("weather", map[string]string{"city": "Oslo"})}))
	run = h.until("run")
	h.write(rpcLine(t, map[string]any{"jsonrpc": "2.0", "id": run.ID, "error": map[string]any{"code": 1, "message": "no network"}}))
	if m := h.await("x"); !strings.Contains(string(m.Result), "no network") || m.get("isError") != "true" {
		t.Errorf("a function that failed: %s %v", m.Result, m.Error)
	}
	typed := weather("read")
	typed["outputSchema"] = map[string]any{"type": "object", "required": []string{"rain"}}
	h.call("provide", provided(typed))
	h.answer = func(rpcMessage) any { return map[string]int{"degrees": 21} }
	if m := h.call("call", tool("weather", map[string]string{"city": "Oslo"})); !strings.Contains(m.get("summary"), "the call ran (do not repeat it), but") || m.get("isError") != "true" {
		t.Errorf("a result that does not match the function's schema: %s %v", m.Result, m.Error)
	}
}

// A recording answers in place of the host.
func TestRPCProvideReplay(t *testing.T) {
	dir, command := inProject(t)
	file := filepath.Join(dir, "r.jsonl")
	call := tool("weather", map[string]string{"city": "Oslo"})
	t.Run("record", func(t *testing.T) {
		h := startRPC(t, command("--yes", "--record", file, "rpc"))
		h.answer = func(rpcMessage) any { return map[string]string{"text": "sunny"} }
		h.call("provide", provided(weather("")))
		h.call("call", call)
	})
	h := startRPC(t, command("--yes", "--replay", file, "rpc"))
	if m := h.call("provide", provided(weather(""))); m.get("tools") != `["weather"]` {
		t.Errorf("provide: %s %v", m.Result, m.Error)
	}
	if m := h.call("call", call); m.get("llmContent") != "sunny" {
		t.Errorf("%s %v", m.Result, m.Error)
	}
	for _, m := range h.told {
		if m.Method == "run" {
			t.Error("the host was asked")
		}
	}
}
