//go:build !windows

package house_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// bin is the folder for what build builds.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "examples"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

// build builds toolreg and the example agent in Go once for all tests.
var build = sync.OnceValue(func() error {
	for name, dir := range map[string]string{"toolreg": filepath.Join("cmd", "toolreg"), "agent": filepath.Join("examples", "go")} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(bin, name), ".")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", dir, err, out)
		}
	}
	return nil
})

// TestExamples runs the example agents against fake provider APIs that reject what the
// real ones would reject. The model reads a file, calls a tool that does not exist, and
// then says what it read.
func TestExamples(t *testing.T) {
	t.Chdir(root)
	agents(t, map[string]func() http.Handler{
		"openai.sh":       func() http.Handler { return openAIStandIn() },
		"openai.ts":       func() http.Handler { return openAIStandIn() },
		"anthropic.sh":    func() http.Handler { return anthropicStandIn() },
		"anthropic.py":    func() http.Handler { return anthropicStandIn() },
		"gemini.sh":       func() http.Handler { return geminiStandIn() },
		"interactions.sh": func() http.Handler { return interactionsStandIn() },
		"go":              func() http.Handler { return responsesStandIn() },
	}, func(t *testing.T, run func(dir, prompt string) string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("the plum is ripe\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if out := run(dir, "What does note.txt say?"); out != "It says: the plum is ripe\n" {
			t.Errorf("printed %q", out)
		}
	})
}

// agents runs a test for each example agent with its provider's API. run runs the agent in
// a folder and returns its output.
func agents(t *testing.T, apis map[string]func() http.Handler, test func(t *testing.T, run func(dir, prompt string) string)) {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("examples")
	if err != nil {
		t.Fatal(err)
	}
	for name, api := range apis {
		t.Run(name, func(t *testing.T) {
			command := []string{filepath.Join(examples, name)}
			switch {
			case name == "go":
				command = []string{filepath.Join(bin, "agent")}
			case filepath.Ext(name) == ".ts":
				command = []string{"node", withoutTypes(t, command[0])}
			}
			server := httptest.NewServer(api())
			defer server.Close()
			test(t, func(dir, prompt string) string {
				cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], prompt)...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
					"XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
					"NO_PROXY=127.0.0.1", "TOOLREG_SEARCH_CLIENT=true",
					"OPENAI_API_KEY=key", "ANTHROPIC_API_KEY=key", "GEMINI_API_KEY=key",
					"OPENAI_BASE_URL="+server.URL+"/v1", "ANTHROPIC_BASE_URL="+server.URL, "GEMINI_BASE_URL="+server.URL)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Errorf("%v\n%s", err, stderr.String())
				}
				return string(out)
			})
		})
	}
}

// withoutTypes returns the JavaScript that Node.js makes of a TypeScript file. Newer
// versions of Node.js than the one of the tests run the file directly.
func withoutTypes(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "-e",
		`process.stdout.write(require("amaro").transformSync(require("fs").readFileSync(process.argv[1], "utf8"), {mode: "strip-only"}).code)`, path)
	cmd.Dir = filepath.Join("testdata", "npm")
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("%v; make test installs what this needs", err)
	}
	stripped := filepath.Join(t.TempDir(), "agent.mjs")
	if err := os.WriteFile(stripped, out, 0o666); err != nil {
		t.Fatal(err)
	}
	return stripped
}

type doc = map[string]any

// standIn is the API of a provider, with a model that gives two fixed responses.
type standIn struct {
	path, auth string
	header     string // the header with the key
	// tool returns the name in the declaration of a tool.
	tool func(declaration any) (string, bool)
	// calls is the response that calls the tools read_file and nowhere, and said returns
	// the response with a text. results extracts the two results from the conversation.
	calls   any
	said    func(text string) any
	results func(body doc) (read, unknown string, err error)

	mu    sync.Mutex
	turns int
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, err := s.turn(r)
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, err), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *standIn) turn(r *http.Request) (any, error) {
	if r.Method != http.MethodPost || r.URL.Path != s.path || r.Header.Get(s.header) != s.auth || r.Header.Get("Content-Type") != "application/json" {
		return nil, fmt.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
	}
	var body doc
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	if err := s.checkTools(body["tools"]); err != nil {
		return nil, err
	}
	s.turns++
	if s.turns == 1 {
		return s.calls, nil
	}
	read, unknown, err := s.results(body)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(unknown, `There is no tool "nowhere"`) {
		return nil, fmt.Errorf("the unknown tool was answered by %q", unknown)
	}
	return s.said("It says: " + strings.TrimSpace(read)), nil
}

func (s *standIn) checkTools(tools any) error {
	list, _ := tools.([]any)
	if wrapped, ok := dig(tools, 0, "functionDeclarations").([]any); ok { // gemini
		list = wrapped
	}
	var names []string
	for _, d := range list {
		name, ok := s.tool(d)
		if !ok || name == "" || slices.Contains(names, name) {
			return fmt.Errorf("a declaration is invalid: %v", d)
		}
		names = append(names, name)
	}
	if !slices.Contains(names, "read_file") {
		return fmt.Errorf("read_file is not declared, only %v", names)
	}
	return nil
}

// dig follows keys and indices into a document; nil if an element does not exist.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(doc)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step < 0 {
				step += len(l)
			}
			if step < 0 || step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func text(v any, path ...any) string {
	s, _ := dig(v, path...).(string)
	return s
}

// isSchema reports whether v is a schema of params that every API accepts.
func isSchema(v any) bool { return text(v, "type") == "object" && dig(v, "properties") != nil }

func openAIStandIn() *standIn {
	call := func(id, name, arguments string) doc {
		return doc{"id": id, "type": "function", "function": doc{"name": name, "arguments": arguments}}
	}
	return &standIn{
		path: "/v1/chat/completions", header: "Authorization", auth: "Bearer key",
		tool: func(d any) (string, bool) {
			return text(d, "function", "name"), text(d, "type") == "function" && isSchema(dig(d, "function", "parameters"))
		},
		calls: doc{"choices": []any{doc{"finish_reason": "tool_calls", "message": doc{"role": "assistant", "content": nil, "tool_calls": []any{
			call("c1", "read_file", `{"file_path":"note.txt"}`), call("c2", "nowhere", `{}`)}}}}},
		said: func(text string) any {
			return doc{"choices": []any{doc{"finish_reason": "stop", "message": doc{"role": "assistant", "content": text}}}}
		},
		results: func(body doc) (string, string, error) {
			m := body["messages"]
			if text(m, 0, "role") != "user" || text(m, 1, "tool_calls", 1, "id") != "c2" || text(m, 2, "role") != "tool" ||
				text(m, 2, "tool_call_id") != "c1" || text(m, 3, "tool_call_id") != "c2" || dig(m, 4) != nil {
				return "", "", fmt.Errorf("messages do not follow each other: %v", m)
			}
			return text(m, 2, "content"), text(m, 3, "content"), nil
		},
	}
}

func responsesStandIn() *standIn {
	call := func(id, name, arguments string) doc {
		return doc{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": name, "arguments": arguments, "status": "completed"}
	}
	return &standIn{
		path: "/v1/responses", header: "Authorization", auth: "Bearer key",
		tool: func(d any) (string, bool) {
			_, hasStrict := dig(d, "strict").(bool)
			return text(d, "name"), text(d, "type") == "function" && hasStrict && isSchema(dig(d, "parameters"))
		},
		calls: doc{"error": nil, "output": []any{doc{"type": "reasoning", "id": "rs", "summary": []any{}},
			call("c1", "read_file", `{"file_path":"note.txt"}`), call("c2", "nowhere", `{}`)}},
		said: func(text string) any {
			return doc{"output": []any{doc{"type": "message", "role": "assistant", "content": []any{doc{"type": "output_text", "text": text}}}}}
		},
		results: func(body doc) (string, string, error) {
			in := body["input"]
			if text(in, 1, "type") != "reasoning" || text(in, 3, "call_id") != "c2" || text(in, 4, "type") != "function_call_output" ||
				text(in, 4, "call_id") != "c1" || text(in, 5, "call_id") != "c2" || dig(in, 6) != nil {
				return "", "", fmt.Errorf("items do not follow each other: %v", in)
			}
			return text(in, 4, "output"), text(in, 5, "output"), nil
		},
	}
}

func anthropicStandIn() *standIn {
	call := func(id, name string, input doc) doc {
		return doc{"type": "tool_use", "id": id, "name": name, "input": input}
	}
	return &standIn{
		path: "/v1/messages", header: "X-Api-Key", auth: "key",
		tool: func(d any) (string, bool) { return text(d, "name"), isSchema(dig(d, "input_schema")) },
		calls: doc{"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": []any{doc{"type": "text", "text": "I look."},
			call("c1", "read_file", doc{"file_path": "note.txt"}), call("c2", "nowhere", doc{})}},
		said: func(text string) any {
			return doc{"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": []any{doc{"type": "text", "text": text}}}
		},
		results: func(body doc) (string, string, error) {
			m := body["messages"]
			if _, ok := body["max_tokens"].(float64); !ok {
				return "", "", fmt.Errorf("max_tokens is missing")
			}
			first, second := dig(m, 2, "content", 0), dig(m, 2, "content", 1)
			if text(m, 1, "role") != "assistant" || dig(m, 1, "stop_reason") != nil || text(m, 2, "role") != "user" || text(first, "type") != "tool_result" ||
				text(first, "tool_use_id") != "c1" || text(second, "tool_use_id") != "c2" || dig(second, "is_error") != true || dig(m, 3) != nil {
				return "", "", fmt.Errorf("messages do not follow each other: %v", m)
			}
			return text(first, "content", 0, "text"), text(second, "content", 0, "text"), nil
		},
	}
}

func geminiStandIn() *standIn {
	call := func(name string, args doc) doc { return doc{"functionCall": doc{"name": name, "args": args}} }
	return &standIn{
		path: "/v1beta/models/gemini-2.5-flash:generateContent", header: "X-Goog-Api-Key", auth: "key",
		tool: func(d any) (string, bool) {
			parameters, _ := dig(d, "parameters").(doc)
			_, refused := parameters["additionalProperties"]
			return text(d, "name"), parameters != nil && !refused
		},
		calls: doc{"candidates": []any{doc{"finishReason": "STOP", "content": doc{"role": "model", "parts": []any{
			call("read_file", doc{"file_path": "note.txt"}), call("nowhere", doc{})}}}}},
		said: func(text string) any {
			return doc{"candidates": []any{doc{"finishReason": "STOP", "content": doc{"role": "model", "parts": []any{doc{"text": text}}}}}}
		},
		results: func(body doc) (string, string, error) {
			c := body["contents"]
			first, second := dig(c, 2, "parts", 0, "functionResponse"), dig(c, 2, "parts", 1, "functionResponse")
			if text(c, 1, "role") != "model" || text(c, 2, "role") != "user" || text(first, "name") != "read_file" || text(second, "name") != "nowhere" ||
				dig(c, 2, "parts", 2) != nil || dig(c, 3) != nil {
				return "", "", fmt.Errorf("contents do not follow each other: %v", c)
			}
			return text(first, "response", "output"), text(second, "response", "error"), nil
		},
	}
}

func interactionsStandIn() *standIn {
	call := func(id, name string, args doc) doc {
		return doc{"type": "function_call", "id": id, "name": name, "arguments": args}
	}
	return &standIn{
		path: "/v1beta/interactions", header: "X-Goog-Api-Key", auth: "key",
		tool: func(d any) (string, bool) {
			return text(d, "name"), text(d, "type") == "function" && isSchema(dig(d, "parameters"))
		},
		calls: interaction("requires_action", call("c1", "read_file", doc{"file_path": "note.txt"}), call("c2", "nowhere", doc{})),
		said:  saidInteraction,
		results: func(body doc) (string, string, error) {
			input := body["input"]
			first, second := dig(input, 0), dig(input, 1)
			if body["previous_interaction_id"] != "i1" || body["model"] != "gemini-2.5-flash" || text(first, "call_id") != "c1" || text(second, "call_id") != "c2" ||
				dig(second, "is_error") != true || dig(input, 2) != nil {
				return "", "", fmt.Errorf("the input does not answer i1: %v", body)
			}
			return resultText(first), resultText(second), nil
		},
	}
}

func interaction(status string, steps ...any) any {
	return doc{"id": "i1", "object": "interaction", "status": status, "steps": append([]any{doc{"type": "thought", "signature": "x"}}, steps...)}
}

func saidInteraction(text string) any {
	return interaction("completed", doc{"type": "model_output", "content": []any{doc{"type": "text", "text": text}}})
}

// resultText returns the result of a function_result step, which is a text or a list of contents.
func resultText(step any) string {
	if text(step, "type") != "function_result" {
		return ""
	}
	if result := text(step, "result"); result != "" {
		return result
	}
	return text(step, "result", 0, "text")
}
