//go:build !windows

package toolreg_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rpcExamples returns the example agents that keep one toolreg process, each with an API.
func rpcExamples(openAI, responses, anthropic, gemini func() http.Handler) map[string]func() http.Handler {
	streamed := func() http.Handler { return streaming{responses()} }
	return map[string]func() http.Handler{
		"rpc/responses.py": streamed, "rpc/responses.ts": streamed,
		"rpc/openai.py": openAI, "rpc/openai.ts": openAI, "rpc/anthropic.py": anthropic, "rpc/anthropic.ts": anthropic, "rpc/gemini.py": gemini, "rpc/gemini.ts": gemini,
	}
}

// TestExamplesRPC runs the example agents that keep one toolreg process: with a model that
// calls an unknown tool, with one that searches 300 tools, and with one that makes ten calls
// at once, one of which needs approval, and then refuses to go on.
func TestExamplesRPC(t *testing.T) {
	examples := rpcExamples(func() http.Handler { return openAIStandIn() }, func() http.Handler { return responsesStandIn() }, func() http.Handler { return anthropicStandIn() }, func() http.Handler { return geminiStandIn() })
	for name := range examples {
		text, err := os.ReadFile(filepath.Join("examples", name))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 60 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
	agents(t, examples, func(t *testing.T, run func(dir, prompt string) string) {
		dir := t.TempDir()
		writeNote(t, dir)
		if out := run(dir, "What does note.txt say?"); out != "It says: the plum is ripe\n" {
			t.Errorf("printed %q", out)
		}
	})
	agents(t, rpcExamples(func() http.Handler { return searchingOpenAI() }, func() http.Handler { return searchingResponses() }, func() http.Handler { return searchingAnthropic() }, func() http.Handler { return searchingGemini() }),
		func(t *testing.T, run func(dir, prompt string) string) {
			if out := run(manyTools(t), "What changed in invoice 217?"); out != "Found twice.\n" {
				t.Errorf("printed %q", out)
			}
		})
	agents(t, rpcExamples(tenOpenAI, tenResponses, tenAnthropic, tenGemini), func(t *testing.T, run func(dir, prompt string) string) {
		dir := t.TempDir()
		writeNote(t, dir)
		if out := run(dir, "Read it ten times."); out != "refused\n" {
			t.Errorf("printed %q", out)
		}
	})
}

// streaming streams the responses of an API as the Responses API does, the text in two parts.
type streaming struct{ http.Handler }

func (s streaming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	whole := httptest.NewRecorder()
	s.Handler.ServeHTTP(whole, r)
	var response doc
	if err := json.Unmarshal(whole.Body.Bytes(), &response); err != nil || whole.Code != http.StatusOK {
		http.Error(w, whole.Body.String(), http.StatusBadRequest)
		return
	}
	send := func(event doc) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], asText(event)) }
	send(doc{"type": "response.created", "response": doc{"id": "resp", "status": "in_progress", "output": []any{}}})
	said, delta := text(response, "output", 0, "content", 0, "text"), "response.output_text.delta"
	if said == "" {
		said, delta = text(response, "output", 0, "content", 0, "refusal"), "response.refusal.delta"
	}
	send(doc{"type": delta, "delta": said[:len(said)/2]})
	send(doc{"type": delta, "delta": said[len(said)/2:]})
	response["status"] = "completed"
	send(doc{"type": "response.completed", "response": response})
}

func writeNote(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("the plum is ripe\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// ten is the API of a provider, with a model that makes ten calls at once, and refuses to go on
// once they are answered: nine by the note, the last by the refusal of the user.
func ten(calls, refusal any, messages string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body doc
		err := json.NewDecoder(r.Body).Decode(&body)
		list, _ := body[messages].([]any)
		answers := asText(list[min(2, len(list)):])
		switch {
		case err != nil:
		case len(list) == 1:
			_ = json.NewEncoder(w).Encode(calls)
			return
		case strings.Count(answers, "the plum is ripe") != 9 || strings.Count(answers, "The user said no to this call") != 1:
			err = fmt.Errorf("the calls are answered by %s", answers)
		default:
			_ = json.NewEncoder(w).Encode(refusal)
			return
		}
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
	})
}

// tenCalls returns what call returns for nine calls that read the note and one that writes it.
func tenCalls(call func(id, name string, params doc) doc) []any {
	var out []any
	for i := range 9 {
		out = append(out, call(fmt.Sprint("c", i), "read_file", doc{"file_path": "note.txt"}))
	}
	return append(out, call("c9", "write_file", doc{"file_path": "note.txt", "content": ""}))
}

func tenOpenAI() http.Handler {
	calls := tenCalls(func(id, name string, params doc) doc {
		return doc{"id": id, "type": "function", "function": doc{"name": name, "arguments": asText(params)}}
	})
	return ten(doc{"choices": []any{doc{"finish_reason": "tool_calls", "message": doc{"role": "assistant", "content": nil, "tool_calls": calls}}}},
		doc{"choices": []any{doc{"finish_reason": "stop", "message": doc{"role": "assistant", "content": nil, "refusal": "refused"}}}}, "messages")
}

func tenResponses() http.Handler {
	calls := tenCalls(func(id, name string, params doc) doc {
		return doc{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": name, "arguments": asText(params), "status": "completed"}
	})
	return ten(doc{"output": calls}, doc{"output": []any{doc{"type": "message", "role": "assistant", "content": []any{doc{"type": "refusal", "refusal": "refused"}}}}}, "input")
}

func tenAnthropic() http.Handler {
	calls := tenCalls(func(id, name string, params doc) doc {
		return doc{"type": "tool_use", "id": id, "name": name, "input": params}
	})
	return ten(doc{"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": calls},
		doc{"type": "message", "role": "assistant", "stop_reason": "refused", "content": []any{}}, "messages")
}

func tenGemini() http.Handler {
	calls := tenCalls(func(_, name string, params doc) doc { return doc{"functionCall": doc{"name": name, "args": params}} })
	return ten(doc{"candidates": []any{doc{"finishReason": "STOP", "content": doc{"role": "model", "parts": calls}}}},
		doc{"candidates": []any{doc{"finishReason": "refused"}}}, "contents")
}
