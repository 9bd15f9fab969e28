//go:build !windows

package house_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestExamplesSearch runs the example agents with 300 tools. The model searches for a
// tool, calls it, and calls it again in a later turn. Each turn starts toolreg again, and
// must declare the same few tools.
func TestExamplesSearch(t *testing.T) {
	t.Chdir(root)
	agents(t, map[string]func() http.Handler{
		"openai.sh":       func() http.Handler { return searchingOpenAI() },
		"openai.ts":       func() http.Handler { return searchingOpenAI() },
		"gemini.sh":       func() http.Handler { return searchingGemini() },
		"interactions.sh": func() http.Handler { return searchingInteractions() },
		"anthropic.sh":    func() http.Handler { return searchingAnthropic() },
		"anthropic.py":    func() http.Handler { return searchingAnthropic() },
		"go":              func() http.Handler { return searchingResponses() },
	}, func(t *testing.T, run func(dir, prompt string) string) {
		if out := run(manyTools(t), "What changed in invoice 217?"); out != "Found twice.\n" {
			t.Errorf("printed %q", out)
		}
	})
}

// manyTools returns a configuration folder whose settings have 300 tools. Each tool prints
// its params.
func manyTools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var tools []doc
	for i := range 300 {
		tools = append(tools, doc{"name": fmt.Sprint("invoice_", i), "description": fmt.Sprintf("Shows what changed in invoice number %d.", i),
			"parameters": doc{"type": "object", "properties": doc{"year": doc{"type": "integer"}}, "required": []string{"year"}}})
	}
	list, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(doc{"toolDiscoveryCommand": []string{"cat", filepath.Join(dir, "tools.json")}, "toolCallCommand": []string{"sh", "-c", "cat"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tools.json": list, "config/toolreg/settings.json": settings} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// searching is the API of a provider, with a model that searches for a tool and calls it
// in two turns.
type searching struct {
	path string
	// turns are the model's responses except the last one, which is said.
	turns []any
	said  any
	// answer checks the answer to a turn, at the end of the messages.
	answer func(turn int, messages any) error
	// messages is the name of the field with the conversation; declared checks the tools.
	messages string
	declared func(tools any) error

	tools any // of the first request
	at    int
}

func (s *searching) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := s.turn(r)
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, err), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *searching) turn(r *http.Request) (any, error) {
	var body doc
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != s.path {
		return nil, fmt.Errorf("%s: %v", r.URL.Path, err)
	}
	if s.at == 0 {
		s.tools = body["tools"]
		if err := s.declared(s.tools); err != nil {
			return nil, err
		}
	} else if err := s.answer(s.at, body[s.messages]); err != nil {
		return nil, fmt.Errorf("after turn %d: %w", s.at, err)
	}
	if !reflect.DeepEqual(s.tools, body["tools"]) {
		return nil, fmt.Errorf("turn %d declares other tools", s.at+1)
	}
	s.at++
	if s.at > len(s.turns) {
		return s.said, nil
	}
	return s.turns[s.at-1], nil
}

// wanted is the tool that the model looks for.
const wanted = "invoice_217"

// year returns the params of the model's call in a turn.
func year(turn int) doc { return doc{"year": 2020 + turn} }

func asText(v any) string {
	data, _ := json.Marshal(v) // documents always encode
	return string(data)
}

// checkResult checks the result of a call in a turn.
func checkResult(turn int, result string) error {
	if want := asText(year(turn)); result != want {
		return fmt.Errorf("the call was answered by %.300q, want %q", result, want)
	}
	return nil
}

// checkSearch checks the answer of search_tools.
func checkSearch(result string) error {
	var found struct {
		Tools []struct {
			Name   string
			Params doc
		}
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil || len(found.Tools) == 0 || found.Tools[0].Name != wanted || found.Tools[0].Params["required"] == nil {
		return fmt.Errorf("the search was answered by %.300q: %v", result, err)
	}
	return nil
}

// checkReached checks that few tools are declared: not the wanted one, but the three that
// find and call it.
func checkReached(names []string) error {
	all := " " + strings.Join(names, " ") + " "
	if len(names) > 200 || strings.Contains(all, " "+wanted+" ") || !strings.HasSuffix(all, " search_tools describe_tools call_tool ") {
		return fmt.Errorf("%d tools are declared: %s", len(names), all)
	}
	return nil
}

func namesIn(list any, path ...any) (names []string) {
	entries, _ := list.([]any)
	for _, e := range entries {
		names = append(names, text(e, path...))
	}
	return names
}

func searchingOpenAI() *searching {
	call := func(name string, arguments any) any {
		return doc{"choices": []any{doc{"finish_reason": "tool_calls", "message": doc{"role": "assistant", "content": nil,
			"tool_calls": []any{doc{"id": "c", "type": "function", "function": doc{"name": name, "arguments": asText(arguments)}}}}}}}
	}
	return &searching{
		path: "/v1/chat/completions", messages: "messages",
		declared: func(tools any) error { return checkReached(namesIn(tools, "function", "name")) },
		turns: []any{call("search_tools", doc{"query": "invoice 217"}), call("call_tool", doc{"name": wanted, "params": year(2)}),
			call("call_tool", doc{"name": wanted, "params": year(3)})},
		said: doc{"choices": []any{doc{"finish_reason": "stop", "message": doc{"role": "assistant", "content": "Found twice."}}}},
		answer: func(turn int, messages any) error {
			if turn == 1 {
				return checkSearch(text(messages, -1, "content"))
			}
			return checkResult(turn, text(messages, -1, "content"))
		},
	}
}

func searchingGemini() *searching {
	turn := func(part doc) any {
		return doc{"candidates": []any{doc{"finishReason": "STOP", "content": doc{"role": "model", "parts": []any{part}}}}}
	}
	call := func(name string, args any) any { return turn(doc{"functionCall": doc{"name": name, "args": args}}) }
	return &searching{
		path: "/v1beta/models/gemini-2.5-flash:generateContent", messages: "contents",
		declared: func(tools any) error { return checkReached(namesIn(dig(tools, 0, "functionDeclarations"), "name")) },
		turns: []any{call("search_tools", doc{"query": "invoice 217"}), call("call_tool", doc{"name": wanted, "params": year(2)}),
			call("call_tool", doc{"name": wanted, "params": year(3)})},
		said: turn(doc{"text": "Found twice."}),
		answer: func(turn int, contents any) error {
			response := dig(contents, -1, "parts", 0, "functionResponse")
			if turn == 1 {
				return checkSearch(text(response, "response", "output"))
			}
			if text(response, "name") != "call_tool" {
				return fmt.Errorf("the answer is named %q", text(response, "name"))
			}
			return checkResult(turn, text(response, "response", "output"))
		},
	}
}

func searchingInteractions() *searching {
	call := func(name string, args any) any {
		return interaction("requires_action", doc{"type": "function_call", "id": "c", "name": name, "arguments": args})
	}
	return &searching{
		path: "/v1beta/interactions", messages: "input",
		declared: func(tools any) error { return checkReached(namesIn(tools, "name")) },
		turns: []any{call("search_tools", doc{"query": "invoice 217"}), call("call_tool", doc{"name": wanted, "params": year(2)}),
			call("call_tool", doc{"name": wanted, "params": year(3)})},
		said: saidInteraction("Found twice."),
		answer: func(turn int, input any) error {
			if turn == 1 {
				return checkSearch(resultText(dig(input, 0)))
			}
			return checkResult(turn, resultText(dig(input, 0)))
		},
	}
}

// searchingAnthropic returns an API that searches itself.
func searchingAnthropic() *searching {
	message := func(stop string, content ...any) any {
		return doc{"type": "message", "role": "assistant", "stop_reason": stop, "content": content}
	}
	call := func(turn int) doc { return doc{"type": "tool_use", "id": "c", "name": wanted, "input": year(turn)} }
	return &searching{
		path: "/v1/messages", messages: "messages",
		declared: func(tools any) error {
			list, _ := tools.([]any)
			if len(list) < 313 || text(tools, -1, "type") != "tool_search_tool_bm25_20251119" {
				return fmt.Errorf("%d tools are declared, the last is %s", len(list), asText(dig(tools, -1)))
			}
			for _, d := range list {
				if text(d, "name") == wanted && dig(d, "defer_loading") != true {
					return fmt.Errorf("%s is not deferred", wanted)
				}
			}
			return nil
		},
		turns: []any{
			message("tool_use", doc{"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": doc{"query": "invoice 217"}},
				doc{"type": "tool_search_tool_result", "tool_use_id": "s", "content": doc{"type": "tool_search_tool_search_result",
					"tool_references": []any{doc{"type": "tool_reference", "tool_name": wanted}}}}, call(1)),
			message("tool_use", call(2)),
		},
		said: message("end_turn", doc{"type": "text", "text": "Found twice."}),
		answer: func(turn int, messages any) error {
			if dig(messages, -1, "content", 1) != nil || text(messages, -1, "content", 0, "tool_use_id") != "c" {
				return fmt.Errorf("the answer is %s", asText(dig(messages, -1)))
			}
			return checkResult(turn, text(messages, -1, "content", 0, "content", 0, "text"))
		},
	}
}

// searchingResponses returns an API that leaves the search to its client.
func searchingResponses() *searching {
	turn := func(item doc) any { return doc{"output": []any{item}} }
	call := func(i int) any {
		return turn(doc{"type": "function_call", "id": "fc", "call_id": "c", "name": wanted, "namespace": "command", "arguments": asText(year(i)), "status": "completed"})
	}
	return &searching{
		path: "/v1/responses", messages: "input",
		declared: func(tools any) error {
			names := namesIn(tools, "name")
			if text(tools, -1, "type") != "tool_search" || text(tools, -1, "execution") != "client" || len(names) > 200 {
				return fmt.Errorf("%d tools are declared, the last is %s", len(names), asText(dig(tools, -1)))
			}
			return nil
		},
		turns: []any{turn(doc{"type": "tool_search_call", "id": "tsc", "call_id": "t", "execution": "client", "status": "completed", "arguments": doc{"query": "invoice 217"}}), call(2), call(3)},
		said:  turn(doc{"type": "message", "role": "assistant", "content": []any{doc{"type": "output_text", "text": "Found twice."}}}),
		answer: func(turn int, input any) error {
			last := dig(input, -1)
			if turn > 1 {
				if text(last, "namespace") != "command" || text(input, -2, "namespace") != "command" {
					return fmt.Errorf("the call and its answer lost their namespace: %s", asText(last))
				}
				return checkResult(turn, text(last, "output"))
			}
			found := dig(last, "tools", 0)
			if text(last, "type") != "tool_search_output" || text(last, "call_id") != "t" || text(found, "type") != "namespace" || text(found, "name") != "command" ||
				text(found, "tools", 0, "name") != wanted || dig(found, "tools", 0, "defer_loading") != true {
				return fmt.Errorf("the search was answered by %.500s", asText(last))
			}
			return nil
		},
	}
}
