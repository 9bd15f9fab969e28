//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// rpcHost is a host program of toolreg rpc.
type rpcHost struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out chan rpcMessage
	// answer answers a question of toolreg; nil means it is not answered. The test may answer later
	// with [rpcHost.reply].
	answer func(rpcMessage) any
	told   []rpcMessage // notifications and questions, in order
}

type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    struct {
			Code      string
			Exit      int
			Hint      string
			Questions []struct{ ID, CallID, Tool string }
		}
	} `json:"error"`
}

// get returns a member of the params or the result, as text.
func (m rpcMessage) get(name string) string {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(slices.Concat(m.Params, m.Result), &all)
	var text string
	if json.Unmarshal(all[name], &text) == nil {
		return text
	}
	return string(all[name])
}

// startRPC starts toolreg rpc and initializes the connection.
func startRPC(t testing.TB, cmd *exec.Cmd, capabilities ...string) *rpcHost {
	t.Helper()
	h := &rpcHost{t: t, cmd: cmd, out: make(chan rpcMessage, 20_000)}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	var err error
	if h.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(h.out)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var m rpcMessage
			if err := json.Unmarshal(line, &m); err != nil {
				m.Method = "no JSON: " + string(line)
			}
			h.out <- m
		}
	}()
	t.Cleanup(func() {
		_ = h.in.Close()
		<-ended
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("toolreg rpc: %v\n%s", err, stderr.String())
		}
	})
	can := map[string]bool{}
	for _, c := range capabilities {
		can[c] = true
	}
	if m := h.call("initialize", map[string]any{"client": map[string]string{"name": "test"}, "capabilities": can}); m.Error != nil {
		t.Fatal(m.Error)
	}
	return h
}

func (h *rpcHost) write(line string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		h.t.Fatal(err)
	}
}

// send sends a request.
func (h *rpcHost) send(id, method string, params any) {
	h.t.Helper()
	h.write(rpcLine(h.t, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

func rpcLine(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// reply answers a question.
func (h *rpcHost) reply(m rpcMessage, result any) {
	h.t.Helper()
	h.write(rpcLine(h.t, map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}))
}

// next returns the next message.
func (h *rpcHost) next() rpcMessage {
	h.t.Helper()
	select {
	case m, ok := <-h.out:
		if !ok {
			h.t.Fatal("toolreg rpc has ended")
		}
		return m
	case <-time.After(patience):
		h.t.Fatal("no message within ", patience)
	}
	panic("unreachable")
}

// await returns the answer to a request, and handles what comes before.
func (h *rpcHost) await(id string) rpcMessage {
	h.t.Helper()
	return h.awaitAll(id)[0]
}

// awaitAll returns the answers to requests, which may come in any order, and handles what comes
// before.
func (h *rpcHost) awaitAll(ids ...string) []rpcMessage {
	h.t.Helper()
	out := make([]rpcMessage, len(ids))
	for open := len(ids); open > 0; {
		m := h.next()
		if m.Method == "" {
			at := slices.IndexFunc(ids, func(id string) bool { return string(m.ID) == `"`+id+`"` })
			if at < 0 {
				h.t.Fatalf("an answer to %s: %s %v", m.ID, m.Result, m.Error)
			}
			out[at] = m
			open--
			continue
		}
		h.told = append(h.told, m)
		if m.ID != nil && h.answer != nil {
			if result := h.answer(m); result != nil {
				h.reply(m, result)
			}
		}
	}
	return out
}

// until returns the next message of a method, and handles what comes before.
func (h *rpcHost) until(method string) rpcMessage {
	h.t.Helper()
	for {
		if m := h.next(); m.Method == method {
			return m
		} else if m.Method == "" {
			h.t.Fatalf("an answer before %s: %s %v", method, m.ID, m.Error)
		}
	}
}

func (h *rpcHost) call(method string, params any) rpcMessage {
	h.t.Helper()
	h.send("id", method, params)
	return h.await("id")
}

func tool(name string, params any) map[string]any {
	return map[string]any{"tool": name, "params": params}
}

func writeFile(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return string(out)
}

const server = "--mcp=t=mcp-testserver"

// What a method returns is what the command of that name prints, byte for byte.
func TestCommandsPrintAsRPC(t *testing.T) {
	t.Parallel()
	dir, command := inProject(t, server)
	writeFile(t, dir, "a.txt", "hello\u200b\n")
	h := startRPC(t, command("rpc"))
	for _, format := range []string{"gemini", "openai", "openai-responses", "anthropic", "bedrock", "mistral", "mcp", "json-schema"} {
		for _, more := range []string{"", "request", "defer", "filter"} {
			params, flags := map[string]any{"format": format}, []string{"schema", "--format", format}
			switch more {
			case "request":
				params["request"], flags = true, append(flags, "--request")
			case "defer":
				params["defer"], flags = "all", append(flags, "--defer", "all")
			case "filter":
				params["source"], flags = []string{"mcp:*"}, append(flags, "--source", "mcp:*")
			}
			var got struct{ Declarations json.RawMessage }
			m := h.call("declare", params)
			if err := json.Unmarshal(m.Result, &got); err != nil {
				t.Fatal(err, m.Error)
			}
			if diff := rpcDiff(output(t, command(flags...)), string(got.Declarations)+"\n"); diff != "" {
				t.Errorf("declare %s %s (-command +rpc):\n%s", format, more, diff)
			}
		}
	}
	for _, format := range []string{"prompt", "typescript"} {
		if diff := rpcDiff(output(t, command("schema", "--format", format)), h.call("declare", map[string]any{"format": format}).get("declarations")); diff != "" {
			t.Errorf("declare %s (-command +rpc):\n%s", format, diff)
		}
	}
	for _, tt := range []struct {
		method string
		params map[string]any
		argv   []string
	}{
		{"list", map[string]any{}, []string{"list"}},
		{"list", map[string]any{"all": true, "server": "t"}, []string{"list", "--all", "--server", "t"}},
		{"list", map[string]any{"tool": "read_*"}, []string{"list", "read_*"}},
		{"list", map[string]any{"tool": "t__echo"}, []string{"list", "t__echo"}},
		{"search", map[string]any{"query": "add numbers", "limit": 2}, []string{"search", "add numbers", "--limit", "2"}},
		{"why", tool("run_shell_command", map[string]any{"command": "git log | tee x"}), []string{"why", "run_shell_command", "command=git log | tee x"}},
		{"why", map[string]any{"tool": "t__echo", "explain": true}, []string{"why", "t__echo", "--explain"}},
		{"call", tool("read_file", map[string]any{"file_path": "a.txt"}), []string{"call", "read_file", "file_path=a.txt"}},
		{"call", tool("read_file", map[string]any{"file_path": "none.txt"}), []string{"call", "read_file", "file_path=none.txt"}},
		{"servers", map[string]any{"names": "t"}, []string{"servers", "t"}},
	} {
		m := h.call(tt.method, tt.params)
		want, _ := command(append(tt.argv, "--json")...).Output() // a failed tool is exit 7
		got, changing := string(m.Result)+"\n", []string{"durationMs", "connectMs"}
		if diff := rpcDiff(without(string(want), changing...), without(got, changing...)); diff != "" {
			t.Errorf("%s %v (-command +rpc): %v\n%s", tt.method, tt.params, m.Error, diff)
		}
	}
}

// without replaces the values of numeric members by 0.
func without(text string, names ...string) string {
	for _, name := range names {
		before, after, ok := strings.Cut(text, `"`+name+`":`)
		if ok {
			text = before + `"` + name + `":0` + strings.TrimLeft(after, "0123456789")
		}
	}
	return text
}

// responses returns a response with calls in each format. Ids and names are made of the
// index.
func responses(t testing.TB, names []string, params []string) map[string]string {
	t.Helper()
	raw := func(i int) json.RawMessage { return json.RawMessage(params[i]) }
	all := map[string][]any{}
	for i, name := range names {
		id := fmt.Sprint("call_", i)
		all["openai"] = append(all["openai"], map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": params[i]}})
		all["mistral"] = append(all["mistral"], map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": params[i]}})
		all["openai-responses"] = append(all["openai-responses"], map[string]any{"type": "function_call", "id": "fc" + id, "call_id": id, "name": name, "arguments": params[i]})
		all["anthropic"] = append(all["anthropic"], map[string]any{"type": "tool_use", "id": id, "name": name, "input": raw(i)})
		all["bedrock"] = append(all["bedrock"], map[string]any{"toolUse": map[string]any{"toolUseId": id, "name": name, "input": raw(i)}})
		all["gemini"] = append(all["gemini"], map[string]any{"functionCall": map[string]any{"id": id, "name": name, "args": raw(i)}})
		all["mcp"] = append(all["mcp"], map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": name, "arguments": raw(i)}})
	}
	message := map[string]any{"role": "assistant", "content": nil}
	out := map[string]string{"mcp": rpcLine(t, all["mcp"])}
	for _, format := range []string{"openai", "mistral"} {
		message["tool_calls"] = all[format]
		out[format] = rpcLine(t, map[string]any{"choices": []any{map[string]any{"finish_reason": "tool_calls", "message": message}}})
	}
	out["openai-responses"] = rpcLine(t, map[string]any{"object": "response", "status": "completed", "output": all["openai-responses"]})
	out["anthropic"] = rpcLine(t, map[string]any{"type": "message", "role": "assistant", "content": all["anthropic"], "stop_reason": "tool_use"})
	out["bedrock"] = rpcLine(t, map[string]any{"output": map[string]any{"message": map[string]any{"role": "assistant", "content": all["bedrock"]}}, "stopReason": "tool_use"})
	out["gemini"] = rpcLine(t, map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"role": "model", "parts": all["gemini"]}, "finishReason": "STOP"}}})
	return out
}

// answer gives the messages that call --format prints, in every format: for calls that
// succeed, fail, are unknown, invalid, denied, and ten at once.
func TestCallAnswersAsRPC(t *testing.T) {
	t.Parallel()
	dir, command := inProject(t, server)
	writeFile(t, dir, "a.txt", "hello\n")
	writeFile(t, dir, "big.txt", strings.Repeat("0123456789 0123456789\n", 6_000))
	h := startRPC(t, command("rpc"))
	names := []string{"read_file", "read_file", "nowhere", "read_file", "write_file", "run_shell_command", "search_tools", "t__add"}
	params := []string{`{"file_path":"a.txt"}`, `{"file_path":"none.txt"}`, `{}`, `{"path":1}`, `{"file_path":"b.txt","content":"x"}`, `{"command":"rm -rf /"}`, `{"query":"add numbers"}`, `{"a":1,"b":2}`}
	for range 10 {
		names, params = append(names, "read_file"), append(params, `{"file_path":"big.txt","limit":6000}`)
	}
	for format, response := range responses(t, names, params) {
		cmd := command("call", "--format", format)
		cmd.Stdin = strings.NewReader(response)
		want := output(t, cmd)
		var got struct {
			Messages []json.RawMessage
			Calls    []struct {
				ID, Tool, Decision, ErrorCategory, Summary string
				OK                                         bool
				Sizes                                      struct{ Params, Result int }
			}
		}
		m := h.call("answer", map[string]any{"format": format, "response": json.RawMessage(response)})
		if err := json.Unmarshal(m.Result, &got); err != nil {
			t.Fatal(format, err, m.Error)
		}
		lines := ""
		for _, message := range got.Messages {
			lines += string(message) + "\n"
		}
		if diff := rpcDiff(overflowFile(want), overflowFile(lines)); diff != "" {
			t.Errorf("%s (-command +rpc):\n%s", format, diff)
		}
		var shown []string
		for _, c := range got.Calls[:8] {
			shown = append(shown, strings.Join([]string{c.ID, c.Tool, c.Decision, fmt.Sprint(c.OK), c.ErrorCategory}, " "))
		}
		if diff := rpcDiff([]string{"call_0 read_file allow true ", "call_1 read_file allow false execution", "call_2 nowhere  false ", "call_3 read_file  false validation", "call_4 write_file ask false ",
			"call_5 run_shell_command deny false ", "call_6 search_tools allow true ", "call_7 add ask false "}, shown); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", format, diff)
		}
		if c := got.Calls[9]; c.Sizes.Params != len(params[9]) || c.Sizes.Result < 50_000 || c.Sizes.Result > 110_000 {
			t.Errorf("%s: sizes %+v", format, c.Sizes)
		}
	}
	if m := h.call("answer", map[string]any{"format": "openai", "response": map[string]any{"role": "assistant", "content": "Done."}}); string(m.Result) != `{"message":{"content":"Done.","role":"assistant"},"messages":[],"calls":[]}` {
		t.Errorf("a response without calls: %s %v", m.Result, m.Error)
	}
	if m := h.call("answer", map[string]any{"format": "openai", "response": map[string]any{"candidates": 1}}); m.Error == nil || m.Error.Data.Exit != 2 {
		t.Errorf("a response of another format: %s %v", m.Result, m.Error)
	}
}

// rpcDiff returns both values if they are not equal; go-cmp would count among the packages
// that initialize with the program.
func rpcDiff[T any](want, got T) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("-%v\n+%v", want, got)
}

// overflowFile replaces the name of the file that has a whole result.
func overflowFile(text string) string { return overflow.ReplaceAllString(text, "FILE") }

var overflow = regexp.MustCompile(`[^ "\\]*/tmp/[^ "\\]*|/[^ "\\]*toolreg[^ "\\]*`)

// What is wrong with a line is answered, and the next line is read.
func TestRPCMalformedLines(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "a.txt", "hello\n")
	first := command("rpc")
	first.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"list"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"cancel","params":{"id":1}}`)
	if out := output(t, first); strings.Count(out, `"code":-32600`) != 2 {
		t.Errorf("before initialize: %s", out)
	}
	h := startRPC(t, command("rpc"))
	for line, want := range map[string]int{
		"garbage":                                                     -32700,
		`{"jsonrpc":"2.0","id":"id",`:                                 -32700,
		"\xff":                                                        -32700,
		`[{"jsonrpc":"2.0","id":"id"}]`:                               -32600,
		`{"id":"id","method":"list"}`:                                 -32600,
		`{"jsonrpc":"2.0","id":"id"}`:                                 -32600,
		`{"jsonrpc":"2.0","id":null,"method":"list"}`:                 -32600,
		`{"jsonrpc":"2.0","id":{},"method":"list"}`:                   -32600,
		`{"jsonrpc":"2.0","id":"id","method":7}`:                      -32600,
		`{"jsonrpc":"2.0","id":"id","method":"list","method":"call"}`: -32600,
		`{"jsonrpc":"2.0","id":"id","method":"initialize","params":{"client":{"name":"again"}}}`:              -32600,
		`{"jsonrpc":"2.0","id":"id","method":"nothing"}`:                                                      -32601,
		`{"jsonrpc":"2.0","id":"id","method":"list","params":[1]}`:                                            -32602,
		`{"jsonrpc":"2.0","id":"id","method":"list","params":{"color":"red"}}`:                                -32602,
		`{"jsonrpc":"2.0","id":"id","method":"list","params":{"Tool":"x"}}`:                                   -32602,
		`{"jsonrpc":"2.0","id":"id","method":"list","params":{"tool":"a","tool":"b"}}`:                        -32602,
		`{"jsonrpc":"2.0","id":"id","method":"list","params":{"server":7}}`:                                   -32602,
		`{"jsonrpc":"2.0","id":"id","method":"declare","params":{}}`:                                          -32602,
		`{"jsonrpc":"2.0","id":"id","method":"declare","params":{"format":"no"}}`:                             -32000,
		`{"jsonrpc":"2.0","id":"id","method":"call","params":{"tool":"nowhere"}}`:                             -32000,
		`{"jsonrpc":"2.0","id":"id","method":"call","params":{"tool":"read_file","params":{"a":1,"a":2}}}`:    -32000,
		`{"jsonrpc":"2.0","id":"id","method":"list","params":{"tool":"` + strings.Repeat("x", 33<<20) + `"}}`: -32600,
	} {
		h.write(line)
		if m := h.next(); m.Error == nil || m.Error.Code != want {
			t.Errorf("%.100s: %s %v, want %d", line, m.Result, m.Error, want)
		}
	}
	h.write(`{"jsonrpc":"2.0","method":"call","params":{"tool":"write_file"}}`) // a notification and
	h.write(`{"jsonrpc":"2.0","id":"toolreg-9","result":{"choice":"yes"}}`)     // an answer to nothing have no effect
	if m := h.call("call", tool("read_file", map[string]any{"file_path": "a.txt"})); m.get("llmContent") != "hello\n" {
		t.Errorf("a call afterwards: %s %v", m.Result, m.Error)
	}
	if m := h.call("call", tool("write_file", map[string]any{"file_path": "b", "content": ""})); m.Error.Data.Code != "needs_approval" || m.Error.Data.Exit != 6 || !strings.Contains(m.Error.Data.Hint, "toolreg approvals answer ") {
		t.Errorf("a call that needs approval of a host without the capability: %+v", m.Error)
	}
}

// The host is asked with all that a person needs to decide, and its answer counts: yes with
// other content writes that, always is remembered, and what was not offered is no.
func TestRPCApprovals(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "a.txt", "one\n")
	h := startRPC(t, command("rpc"), "approve")
	edit := tool("write_file", map[string]any{"file_path": "a.txt", "content": "two\n"})
	answers := func(values ...any) {
		h.answer = func(rpcMessage) any {
			if len(values) == 0 {
				t.Error("asked again")
				return map[string]string{"choice": "no"}
			}
			first := values[0]
			values = values[1:]
			return first
		}
	}
	content := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	type m = map[string]any
	for _, tt := range []struct {
		answer any
		reason string
	}{
		{m{"choice": "no", "reason": "not today"}, "not today"}, {m{"choice": "maybe"}, "not one of the choices"}, {m{"choice": "always-server"}, "not one of the choices"}, {m{}, `"choice" is missing`},
		{m{"choice": "yes", "extra": 1}, `unknown member "extra"`}, {m{"choice": "always", "content": "x"}, "only the answer yes to an edit can have"}, {"yes", "must be an object"}, {[]string{"yes"}, "must be an object"},
	} {
		answers(tt.answer)
		if got := h.call("call", edit); got.Error == nil || got.Error.Data.Code != "denied" || !strings.Contains(got.Error.Message, tt.reason) {
			t.Errorf("%v: %s %+v", tt.answer, got.Result, got.Error)
		}
	}
	if content() != "one\n" {
		t.Fatalf("the file is %q", content())
	}
	q := h.told[0]
	for name, want := range map[string]string{"requestId": "id", "callId": "id", "tool": "write_file", "source": "builtin", "kind": "edit", "params": `{"content":"two\n","file_path":"a.txt"}`,
		"choices": `["yes","always","no"]`, "covers": `{"always":"every edit in this workspace"}`, "reason": "tools of category write require confirmation", "origin": "default", "command": "", "server": ""} {
		if got := q.get(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if !strings.Contains(q.get("diff"), "-one\n+two\n") || !strings.Contains(q.get("text"), "Change \"a.txt\": +1 -1") {
		t.Errorf("the question: %s", q.Params)
	}
	answers(m{"choice": "yes", "content": "three\n"})
	if got := h.call("call", edit); content() != "three\n" || !strings.Contains(got.get("llmContent"), "The user edited the content") {
		t.Errorf("an edit wrote %q: %s %v", content(), got.Result, got.Error)
	}
	answers(m{"choice": "yes", "content": "four"}) // the tool ends the line, and does not ask again
	if h.call("call", edit); content() != "four\n" {
		t.Errorf("an edit wrote %q", content())
	}
	answers(m{"choice": "always"})
	h.call("call", edit)
	answers()
	if got := h.call("call", tool("write_file", m{"file_path": "b.txt", "content": "x"})); got.get("ok") != "true" {
		t.Errorf("after always: %s %v", got.Result, got.Error)
	}
	if list := output(t, command("approvals", "list")); !strings.Contains(list, "edits") {
		t.Errorf("approvals of the person: %s", list)
	}
	answers(m{"choice": "no"})
	h.told = nil
	h.call("call", tool("run_shell_command", m{"command": "touch x"}))
	if q := h.told[0]; q.get("kind") != "exec" || q.get("command") != "touch x" || q.get("directory") == "" {
		t.Errorf("a question about a command: %s", q.Params)
	}
}

// Calls that change something run in the order in which they arrived, questions included,
// while those that only read and parallel ones do not wait. Answers count once, and not after
// the request was canceled.
func TestRPCOrder(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "a.txt", "hello\n")
	h := startRPC(t, command("rpc"), "approve")
	write := func(name string) map[string]any {
		return tool("write_file", map[string]any{"file_path": name, "content": name})
	}
	yes := map[string]string{"choice": "yes"}
	h.send("first", "call", write("first"))
	h.send("second", "answer", map[string]any{"format": "openai", "response": json.RawMessage(responses(t, []string{"write_file", "write_file"}, []string{`{"file_path":"c","content":"1"}`, `{"file_path":"c","content":"2"}`})["openai"])})
	h.send("third", "call", write("third"))
	asked := h.until("approve")
	h.send("read", "call", tool("read_file", map[string]any{"file_path": "a.txt"}))
	if h.await("read"); len(h.told) > 0 {
		t.Fatalf("asked about a later call: %s", h.told[0].Params)
	}
	parallel := write("parallel")
	parallel["parallel"] = true
	h.send("parallel", "call", parallel)
	beside := h.until("approve")
	if asked.get("requestId") != "first" || beside.get("requestId") != "parallel" {
		t.Fatalf("asked about %s and %s", asked.Params, beside.Params)
	}
	h.reply(beside, yes) // out of order
	h.reply(beside, map[string]string{"choice": "no"})
	h.await("parallel")
	var order []string
	h.answer = func(m rpcMessage) any { order = append(order, m.get("requestId")+" "+m.get("callId")); return yes }
	h.send("cancel", "cancel", map[string]string{"id": "first"})
	over := h.awaitAll("cancel", "first")
	if m := over[0]; m.get("cancelled") != "true" {
		t.Fatalf("cancel: %s", m.Result)
	}
	if m := over[1]; m.Error == nil || m.Error.Code != -32800 {
		t.Fatalf("the canceled call: %s", m.Result)
	}
	h.reply(asked, yes) // too late
	h.awaitAll("second", "third")
	if diff := rpcDiff([]string{"second call_0", "second call_1", "third third"}, order); diff != "" {
		t.Errorf("the order of the questions (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"first": "", "c": "2", "third": "third", "parallel": "parallel"} {
		if data, _ := os.ReadFile(filepath.Join(dir, name)); strings.TrimSpace(string(data)) != want {
			t.Errorf("%s has %q", name, data)
		}
	}
	if m := h.call("cancel", map[string]string{"id": "first"}); m.get("cancelled") != "false" {
		t.Errorf("canceling what is over: %s", m.Result)
	}
	h.answer = nil
	h.send("x", "call", tool("run_shell_command", map[string]any{"command": "sleep 60"}))
	q := h.until("approve")
	h.write(`{"jsonrpc":"2.0","id":"x","method":"list"}`)
	if m := h.next(); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("an id in use: %s %v", m.Result, m.Error)
	}
	h.reply(q, yes)
	h.write(`{"jsonrpc":"2.0","method":"cancel","params":{"id":"x"}}`)
	if m := h.await("x"); m.Error == nil || m.Error.Code != -32800 {
		t.Errorf("the canceled command: %s", m.Result)
	}
}

// The last declare binds answer, also one that is still being carried out when the answer is
// asked for; one that fails binds nothing. call is not bound.
func TestRPCDeclareBindsAnswer(t *testing.T) {
	dir, command := inProject(t, server)
	writeFile(t, dir, "a.txt", "hello\n")
	h := startRPC(t, command("rpc"))
	const read, unknown = `{"file_path":"a.txt"}`, "There is no tool"
	for _, step := range []struct {
		declare      map[string]any
		tool, params string
		declared     bool
	}{
		{nil, "read_file", read, true},
		{map[string]any{"format": "openai", "source": []string{"mcp:*", "command"}}, "read_file", read, false},
		{map[string]any{"format": "nothing"}, "read_file", read, false},
		{map[string]any{"format": "openai", "tools": []string{"glob", "grep"}}, "read_file", read, false},
		{nil, "glob", `{"pattern":"*"}`, true},
		{map[string]any{"format": "openai", "category": "read"}, "read_file", read, true},
	} {
		open := 1
		if step.declare != nil {
			h.send("declare", "declare", step.declare)
			open++
		}
		h.send("answer", "answer", map[string]any{"format": "openai", "response": json.RawMessage(responses(t, []string{step.tool}, []string{step.params})["openai"])})
		var got string
		for ; open > 0; open-- { // in either order
			if m := h.next(); string(m.ID) == `"answer"` {
				got = string(m.Result)
			}
		}
		if strings.Contains(got, unknown) == step.declared {
			t.Errorf("%+v: %s", step, got)
		}
	}
	if m := h.call("call", tool("t__fail", nil)); m.Error == nil || m.Error.Data.Code != "needs_approval" {
		t.Errorf("call is bound: %s %v", m.Result, m.Error)
	}
}

// What was declared, deferred tools included, is all that the tools which search and describe others
// know of.
func TestRPCDeclareBindsSearches(t *testing.T) {
	dir, command := inProject(t, server)
	writeFile(t, dir, "a.txt", "hello\n")
	h := startRPC(t, command("rpc"))
	answer := func(tool, params string) string {
		t.Helper()
		m := h.call("answer", map[string]any{"format": "openai", "response": json.RawMessage(responses(t, []string{tool}, []string{params})["openai"])})
		return string(m.Result)
	}
	const found, described = `{"query":"read a file, find files by name","limit":20}`, `{"names":["read_file","glob"]}`
	for _, step := range []struct {
		tools []string
		all   bool
	}{{nil, true}, {[]string{"glob", "grep"}, false}, {[]string{"*"}, true}} {
		if step.tools != nil {
			if m := h.call("declare", map[string]any{"format": "openai", "tools": step.tools, "defer": "all"}); m.Error != nil {
				t.Fatal(m.Error)
			}
		}
		for tool, params := range map[string]string{"search_tools": found, "describe_tools": described} {
			got := answer(tool, params)
			if strings.Contains(got, "Reads") != step.all && strings.Contains(got, "file_path") != step.all || !strings.Contains(got, "pattern") {
				t.Errorf("%q: %s answers %s", step.tools, tool, got)
			}
		}
		if got := answer("call_tool", `{"name":"read_file","params":{"file_path":"a.txt"}}`); strings.Contains(got, "hello") != step.all {
			t.Errorf("%q: a call answers %s", step.tools, got)
		}
	}
}

// Servers ask, log and report progress through the host, for the call that they belong to.
// A host that lacks a capability is not asked.
func TestRPCServers(t *testing.T) {
	dir, command := inProject(t, "--yes", "--mcp", "t=mcp-testserver --dialogs --changes")
	able, unable := startRPC(t, command("rpc"), "elicit", "sample"), startRPC(t, command("rpc"))
	able.answer = func(m rpcMessage) any {
		var p struct {
			Params struct {
				Message         string
				RequestedSchema json.RawMessage
				Messages        []any
			}
		}
		_ = json.Unmarshal(m.Params, &p)
		switch {
		case m.Method == "elicit" && m.get("server") == "t" && m.get("callId") == "id" && p.Params.Message == "Name?":
			return map[string]any{"action": "accept", "content": map[string]any{"name": "Ada"}}
		case m.Method == "sample" && len(p.Params.Messages) == 1:
			return map[string]any{"role": "assistant", "model": "m", "content": map[string]string{"type": "text", "text": "42"}}
		}
		return map[string]string{"action": "cancel"}
	}
	form := tool("form", map[string]any{"message": "Name?", "schema": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]string{"type": "string"}}}})
	for _, tt := range []struct {
		call       map[string]any
		able, none string
	}{
		{form, `accept {"name":"Ada"}`, "decline null"},
		{tool("sample", map[string]any{"prompt": "6*7?"}), "42", "sampling"},
	} {
		if m := able.call("call", tt.call); !strings.Contains(m.get("llmContent"), tt.able) {
			t.Errorf("%v: %s %v", tt.call, m.Result, m.Error)
		}
		if m := unable.call("call", tt.call); !strings.Contains(string(m.Result)+fmt.Sprint(m.Error), tt.none) {
			t.Errorf("without capabilities, %v: %s %v", tt.call, m.Result, m.Error)
		}
	}
	able.told = nil
	able.call("call", tool("log", map[string]any{"level": "info", "text": "working"}))
	able.call("call", tool("work", map[string]any{"steps": 3}))
	logged, steps := false, 0
	for _, m := range able.told {
		logged = logged || m.Method == "log" && m.get("requestId") == "id" && m.get("text") == "working" && m.get("level") == "info" && m.get("server") == "t"
		if m.Method == "progress" && m.get("requestId") == "id" && m.get("total") == "3" {
			steps++
		}
	}
	if !logged || steps == 0 {
		t.Errorf("told: %v", able.told)
	}
	able.call("declare", map[string]any{"format": "openai"})
	able.call("call", tool("grow", map[string]any{"tools": []string{"new_one", "new_two"}}))
	if m := able.until("changed"); m.get("names") != `["new_one","new_two"]` {
		t.Errorf("changed: %s", m.Params)
	}
	if m := able.call("call", tool("new_one", nil)); m.get("llmContent") != "hello" {
		t.Errorf("a new tool: %s %v", m.Result, m.Error)
	}
	_ = dir
}

// With revision 2025-11-25 a server does not say which call it asks about. If there are several,
// the host is not asked, and the results say why; a host could show the wrong call.
func TestRPCQuestionOfOneOfSeveralCalls(t *testing.T) {
	dir, command := inProject(t, "--yes", "--mcp", "t=mcp-testserver --dialogs --protocol 2025-11-25")
	h := startRPC(t, command("rpc", "--quiet"), "elicit")
	h.answer = func(rpcMessage) any {
		return map[string]any{"action": "accept", "content": map[string]any{"name": "Ada"}}
	}
	call := func(name string, params any) map[string]any {
		c := tool(name, params)
		c["parallel"] = true
		return c
	}
	form := call("form", map[string]any{"message": "Name?", "schema": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]string{"type": "string"}}}})
	started := filepath.Join(dir, "started")
	h.send("other", "call", call("slow", map[string]any{"seconds": 60, "started": started}))
	if !waitFor(func() bool { _, err := os.Stat(started); return err == nil }, nil) {
		t.Fatal("the other call has not started")
	}
	m := h.call("call", form)
	if text := m.get("llmContent"); !strings.Contains(text, "decline null") || !strings.Contains(text, "several calls were running there") {
		t.Errorf("%s %v", m.Result, m.Error)
	}
	for _, told := range h.told {
		if told.Method == "elicit" {
			t.Errorf("the host was asked: %s", told.Params)
		}
	}
	h.send("cancel", "cancel", map[string]any{"id": "other"})
	h.awaitAll("cancel", "other")
	if m := h.call("call", form); !strings.Contains(m.get("llmContent"), "accept") {
		t.Errorf("alone: %s %v", m.Result, m.Error)
	}
}

// Output is sent as it comes, and settings are followed: a changed rule counts, and a mistake
// is reported while the earlier settings stay.
func TestRPCOutputAndSettings(t *testing.T) {
	dir, command := inProject(t)
	settings := filepath.Join(dir, "s.yaml")
	writeFile(t, dir, "s.yaml", "allowedTools: [run_shell_command]\n")
	h := startRPC(t, command("--settings", settings, "--quiet", "rpc"))
	run := tool("run_shell_command", map[string]any{"command": "echo one; sleep 0.2; echo two"})
	run["stream"] = true
	if m := h.call("call", run); m.get("ok") != "true" {
		t.Fatalf("%s %v", m.Result, m.Error)
	}
	var pieces string
	for _, m := range h.told {
		if m.Method == "output" && m.get("callId") == "id" {
			pieces += m.get("content")
		}
	}
	if !strings.HasPrefix(pieces, "one\ntwo\n") {
		t.Errorf("output %q", pieces)
	}
	h.call("declare", map[string]any{"format": "openai"})
	writeFile(t, dir, "s.yaml", "excludeTools: [glob]\n")
	if m := h.until("changed"); m.get("names") != `["glob"]` {
		t.Errorf("changed: %s", m.Params)
	}
	if m := h.call("call", run); m.Error == nil || m.Error.Data.Code != "needs_approval" {
		t.Errorf("with the new settings: %s %v", m.Result, m.Error)
	}
	writeFile(t, dir, "s.yaml", "excludeTools: 7\n")
	if m := h.until("diagnostic"); m.get("code") != "reload_failed" {
		t.Errorf("a mistake: %s", m.Params)
	}
	if m := h.call("call", tool("glob", map[string]any{"pattern": "*"})); m.Error == nil || m.Error.Data.Code != "not_found" {
		t.Errorf("with the settings before: %s %v", m.Result, m.Error)
	}
}

// A host that has only listed tools is told the names of those that change.
func TestRPCChangedAfterList(t *testing.T) {
	for method, params := range map[string]any{"list": map[string]any{}, "search": map[string]any{"query": "files"}} {
		t.Run(method, func(t *testing.T) {
			dir, command := inProject(t)
			writeFile(t, dir, "s.yaml", "shell: {timeout: 5m}\n")
			h := startRPC(t, command("--settings", filepath.Join(dir, "s.yaml"), "--quiet", "rpc"))
			h.call(method, params)
			writeFile(t, dir, "s.yaml", "excludeTools: [glob]\n")
			if m := h.until("changed"); m.get("names") != `["glob"]` {
				t.Errorf("changed: %s", m.Params)
			}
		})
	}
}

// A yes that comes after a rule denies the call does not count.
func TestRPCLateYes(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "s.yaml", "shell: {timeout: 5m}\n")
	h := startRPC(t, command("--settings", filepath.Join(dir, "s.yaml"), "--quiet", "rpc"), "approve")
	h.send("late", "call", tool("run_shell_command", map[string]any{"command": "touch ran"}))
	asked := h.until("approve")
	writeFile(t, dir, "s.yaml", "policy: {rules: [{tool: run_shell_command, decision: deny, reason: not today}]}\n")
	h.until("changed")
	h.reply(asked, map[string]any{"choice": "yes"})
	if m := h.await("late"); m.Error == nil || m.Error.Data.Code != "denied" || !strings.Contains(m.Error.Message, "not today") {
		t.Errorf("%s %v", m.Result, m.Error)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the call ran")
	}
}

// At the end of the input calls are canceled, other requests answered, and rpc exits within
// two seconds, also if a tool does not stop or the host does not read.
func TestRPCEndOfInput(t *testing.T) {
	dir, command := inProject(t, "--yes", server)
	h := startRPC(t, command("rpc"))
	started := filepath.Join(dir, "started")
	h.send("slow", "call", tool("t__slow", map[string]any{"seconds": 60, "started": started}))
	h.send("stubborn", "call", map[string]any{"tool": "run_shell_command", "parallel": true, "params": map[string]any{"command": "trap '' TERM INT; touch stubborn; sleep 30 & wait; wait; sleep 30"}})
	for _, name := range []string{"started", "stubborn"} {
		if !waitFor(func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }, nil) {
			t.Fatal("the calls do not start")
		}
	}
	h.send("list", "list", map[string]any{})
	_ = h.in.Close()
	start, got := time.Now(), map[string]bool{}
	for m := range h.out {
		got[string(m.ID)+" "+fmt.Sprint(m.Error != nil && m.Error.Code == -32800)] = true
	}
	if took := time.Since(start); !got[`"slow" true`] || !got[`"stubborn" true`] || !got[`"list" false`] || took > 25*time.Second { // the tools take a minute
		t.Errorf("after %s: %v", took, got)
	}

	silent := command("rpc")
	in, err := silent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	silent.Stdout = w
	if err := silent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	lines := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"client":{"name":"x"}}}` + "\n"
	for i := range 300 { // more than the pipe and the outbox hold
		lines += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"list"}`+"\n", i+1)
	}
	if _, err := io.WriteString(in, lines); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	ended := make(chan error, 1)
	go func() { ended <- silent.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("a host that does not read: %v", err)
		}
	case <-time.After(patience):
		_ = silent.Process.Kill()
		t.Error("a host that does not read keeps rpc from exiting")
	}
}

// A thousand calls at once are all answered, also while many questions are open.
func TestRPCThousandCallsAtOnce(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "a.txt", "hello\n")
	h := startRPC(t, command("rpc"), "approve")
	const calls, questions = 1000, 50
	for i := range questions {
		p := tool("write_file", map[string]any{"file_path": fmt.Sprint("w", i), "content": fmt.Sprint(i)})
		p["parallel"] = true
		h.send(fmt.Sprint("w", i), "call", p)
	}
	for i := range calls {
		h.send(fmt.Sprint("r", i), "call", tool("read_file", map[string]any{"file_path": "a.txt"}))
	}
	answered := map[string]bool{}
	var open []rpcMessage
	for len(answered) < calls {
		m := h.next()
		if m.Method == "approve" {
			open = append(open, m)
		} else if m.Error != nil || m.get("llmContent") != "hello\n" || answered[string(m.ID)] {
			t.Fatalf("%s: %s %v", m.ID, m.Result, m.Error)
		} else {
			answered[string(m.ID)] = true
		}
	}
	for len(open) < questions {
		open = append(open, h.until("approve"))
	}
	slices.Reverse(open)
	for i, q := range open {
		h.reply(q, map[string]string{"choice": []string{"yes", "no"}[i%2]})
	}
	written := 0
	for range questions {
		if h.next().Error == nil {
			written++
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "w*")); written != questions/2 || len(files) != written {
		t.Errorf("%d calls say that they wrote, and there are %d files", written, len(files))
	}
}

// A program that a tool starts cannot approve calls through rpc.
func TestRPCInsideToolAsksNobody(t *testing.T) {
	_, command := inProject(t)
	cmd := command("rpc")
	cmd.Env = append(cmd.Env, "TOOLREG_DEPTH=1")
	h := startRPC(t, cmd, "approve")
	if m := h.call("call", tool("write_file", map[string]any{"file_path": "b", "content": ""})); m.Error == nil || m.Error.Data.Code != "needs_approval" {
		t.Errorf("%s %v %v", m.Result, m.Error, h.told)
	}
}

// With hold nothing runs while a call needs an answer: the error has the questions, and the
// person may answer them elsewhere. A host that answers questions is asked all of them first.
func TestRPCHold(t *testing.T) {
	dir, command := inProject(t)
	type m = map[string]any
	write := func(id, name string) m {
		return m{"id": id, "type": "function", "function": m{"name": "write_file", "arguments": rpcLine(t, m{"file_path": name, "content": "x"})}}
	}
	response := func(calls ...m) m {
		return m{"format": "openai", "hold": true, "response": m{"role": "assistant", "tool_calls": calls}}
	}
	h := startRPC(t, command("rpc"))
	first := response(write("c1", "a.txt"), write("c2", "b.txt"))
	got := h.call("answer", first)
	if got.Error == nil || got.Error.Data.Code != "needs_approval" || got.Error.Data.Exit != 6 || len(got.Error.Data.Questions) != 2 {
		t.Fatalf("%s %+v", got.Result, got.Error)
	}
	for i, q := range got.Error.Data.Questions {
		if q.CallID != fmt.Sprintf("c%d", i+1) || q.Tool != "write_file" {
			t.Errorf("question %d: %+v", i, q)
		}
		output(t, command("approvals", "answer", q.ID, "yes"))
	}
	if got := h.call("answer", first); !strings.Contains(got.get("messages"), "a.txt") || !strings.Contains(got.get("messages"), "b.txt") {
		t.Errorf("after the answers: %s %+v", got.Result, got.Error)
	}

	asking := startRPC(t, command("rpc"), "approve")
	asking.answer = func(m rpcMessage) any {
		if files, _ := filepath.Glob(filepath.Join(dir, "[cd].txt")); len(files) > 0 {
			t.Errorf("asked about %s after %q was written", m.get("callId"), files)
		}
		return map[string]string{"choice": "yes"}
	}
	got = asking.call("answer", response(write("c3", "c.txt"), write("c4", "d.txt")))
	if len(asking.told) != 2 || strings.Count(string(got.Result), `"answeredBy":"host"`) != 2 {
		t.Errorf("%d questions: %s %+v", len(asking.told), got.Result, got.Error)
	}
}

// Settings with a mistake are the answer to initialize, which may be repeated once they are
// corrected.
func TestRPCInitializeAgain(t *testing.T) {
	dir, command := inProject(t)
	writeFile(t, dir, "s.yaml", "excludeTools: 7\n")
	cmd := command("--settings", "s.yaml", "rpc")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for _, want := range []string{`"code":"invalid_settings"`, `"result":{"version"`} {
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"client":{"name":"x"}}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("%v: %s, want %s", err, line, want)
		}
		writeFile(t, dir, "s.yaml", "excludeTools: [glob]\n")
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The published schema accepts what host and toolreg send, and refuses other params.
func TestRPCSchema(t *testing.T) {
	dir, command := inProject(t, server)
	writeFile(t, dir, "a.txt", "hello\n")
	if runtime.GOOS == "linux" { // elsewhere names may have to be UTF-8
		writeFile(t, dir, "caf\xe9.txt", "hello\n")
	}
	text, types := output(t, command("rpc", "--schema")), output(t, command("rpc", "--typescript"))
	schema, err := jsonschema.CompileString("rpc.json", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"InitializeParams", "DeclareResult", "AnswerParams", "CallResult", "ListResult", "SearchResult", "WhyResult", "ServersResult", "CancelResult",
		"ProvideParams", "RunParams", "RunCancelParams", "ApproveParams", "ApproveResult", "ElicitParams", "SampleResult", "ProgressParams", "OutputParams", "LogParams", "DiagnosticParams", "ChangedParams"} {
		if !strings.Contains(types, "export type "+name+" = ") {
			t.Errorf("%s has no type", name)
		}
	}
	valid := func(line string) error {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	for _, without := range []string{`{"jsonrpc":"2.0","id":1,"method":"cancel"}`, `{"jsonrpc":"2.0","id":1,"method":"call"}`} {
		if err := valid(without); err == nil {
			t.Errorf("%s has no params", without)
		}
	}
	if err := valid(`{"jsonrpc":"2.0","id":1,"method":"servers"}`); err != nil {
		t.Errorf("servers needs no params: %v", err)
	}
	var requests []string
	for i, r := range []struct {
		method string
		params map[string]any
	}{
		{"initialize", map[string]any{"client": map[string]string{"name": "x"}, "capabilities": map[string]bool{"approve": true}}},
		{"declare", map[string]any{"format": "openai", "defer": "auto", "tools": []string{"read_*"}}},
		{"answer", map[string]any{"format": "mcp", "response": json.RawMessage(responses(t, []string{"read_file", "x"}, []string{`{}`, `{}`})["mcp"])}},
		{"call", tool("read_file", map[string]any{"file_path": "a.txt"})}, {"call", tool("write_file", map[string]any{"file_path": "b", "content": "x"})}, {"call", tool("nowhere", nil)}, {"call", tool("grep", map[string]any{"pattern": "hello"})},
		{"list", map[string]any{"all": true, "category": "read"}}, {"search", map[string]any{"query": "read"}}, {"why", tool("write_file", nil)}, {"servers", map[string]any{}}, {"cancel", map[string]any{"id": 1}},
	} {
		requests = append(requests, rpcLine(t, map[string]any{"jsonrpc": "2.0", "id": i, "method": r.method, "params": r.params}))
	}
	cmd := command("rpc")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for _, request := range requests {
		if err := valid(request); err != nil {
			t.Errorf("%s: %v", request, err)
		}
		if _, err := io.WriteString(in, request+"\n"); err != nil {
			t.Fatal(err)
		}
		for answered := false; !answered; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if err := valid(line); err != nil {
				t.Errorf("%.300s: %v", line, err)
			}
			var m rpcMessage
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if m.Method == "approve" {
				reply := rpcLine(t, map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]string{"choice": "yes", "content": "y"}})
				if err := valid(reply); err != nil {
					t.Errorf("%s: %v", reply, err)
				}
				if _, err := io.WriteString(in, reply+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			answered = m.Method == ""
		}
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{`{"jsonrpc":"2.0","id":1,"method":"declare","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"list","params":{"color":"red"}}`, `{"jsonrpc":"2.0","id":1,"method":"no","params":{}}`, `{"id":1,"method":"list","params":{}}`} {
		if valid(wrong) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}

// BenchmarkRPC measures calls through a real process: of a built-in reader one after the
// other and a thousand at once, and of a connected server, within a model's response.
func BenchmarkRPC(b *testing.B) {
	dir, command := inProject(b, "--yes", server)
	writeFile(b, dir, "a.txt", "hello\n")
	h := startRPC(b, command("rpc"))
	read := tool("read_file", map[string]any{"file_path": "a.txt"})
	b.Run("one after the other", func(b *testing.B) {
		for b.Loop() {
			h.call("call", read)
		}
	})
	b.Run("a thousand at once", func(b *testing.B) {
		for b.Loop() {
			for i := range 1000 {
				h.send(fmt.Sprint(i), "call", read)
			}
			for range 1000 {
				h.next()
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/call")
	})
	turn := map[string]any{"format": "openai", "response": json.RawMessage(responses(b, []string{"t__echo"}, []string{`{"text":"x"}`})["openai"])}
	b.Run("a turn with a server", func(b *testing.B) {
		for b.Loop() {
			h.call("answer", turn)
		}
	})
}
