//go:build !windows

package house_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rpcExamples returns the example agents that keep one toolreg process, each with an API that
// streams.
func rpcExamples(openAI, responses, anthropic, gemini func() http.Handler) map[string]func() http.Handler {
	out := map[string]func() http.Handler{}
	for name, api := range map[string]func() http.Handler{
		"openai":    func() http.Handler { return &streaming{api: openAI(), conversation: "messages", split: splitOpenAI} },
		"responses": func() http.Handler { return &streaming{api: responses(), conversation: "input", split: splitResponses} },
		"anthropic": func() http.Handler {
			return &streaming{api: anthropic(), conversation: "messages", split: splitAnthropic}
		},
		"gemini": func() http.Handler { return &streaming{api: gemini(), conversation: "contents", split: splitGemini} },
	} {
		out["rpc/"+name+".py"], out["rpc/"+name+".ts"] = api, api
	}
	return out
}

// TestExamplesRPC runs the example agents that keep one toolreg process: with a model that
// calls an unknown tool, with one that searches 300 tools, and with one that makes ten calls
// at once, one of which needs approval.
func TestExamplesRPC(t *testing.T) {
	t.Chdir(root)
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
		if out := run(dir, "What does note.txt say?"); strings.TrimPrefix(out, "I look.\n") != "It says: the plum is ripe\n" {
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
		if out := run(dir, "Read it ten times."); out != "Read.\n" {
			t.Errorf("printed %q", out)
		}
	})
}

// streaming streams the responses of an API in parts, and requires that the model's own message
// comes back whole with the next request.
type streaming struct {
	api          http.Handler
	conversation string // member of a request
	// split returns the events of a response, and what the next request must have of it.
	split func(response doc) (events, own []any)

	own []any
	at  int // where own begins in the conversation
}

func (s *streaming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	var request, response doc
	if err == nil {
		err = json.Unmarshal(data, &request)
	}
	path, streams := strings.CutSuffix(r.URL.Path, ":streamGenerateContent")
	if streams = streams && r.URL.RawQuery == "alt=sse" || request["stream"] == true; err == nil && !streams {
		err = errors.New("no stream is asked for")
	}
	list, _ := request[s.conversation].([]any)
	for i, want := range s.own {
		if got := dig(list, s.at+i); err == nil && asText(got) != asText(want) {
			err = fmt.Errorf("the model's own message is %s, want %s", asText(got), asText(want))
		}
	}
	whole := httptest.NewRecorder()
	if err == nil {
		if path != r.URL.Path {
			r.URL.Path = path + ":generateContent"
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		s.api.ServeHTTP(whole, r)
		err = json.Unmarshal(whole.Body.Bytes(), &response)
	}
	if err != nil || whole.Code != http.StatusOK {
		http.Error(w, fmt.Sprint(err, whole.Body), http.StatusBadRequest)
		return
	}
	events, own := s.split(response)
	s.own, s.at = own, len(list)
	for _, event := range events {
		fmt.Fprintf(w, "data: %s\r\n\r\n", asText(event))
		w.(http.Flusher).Flush()
	}
	if s.conversation == "messages" && dig(events, 0, "choices") != nil {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// halves returns an event for each half of a text.
func halves(text string, event func(half string) doc) []any {
	return []any{event(text[:len(text)/2]), event(text[len(text)/2:])}
}

func splitOpenAI(response doc) (events, own []any) {
	message, _ := dig(response, "choices", 0, "message").(doc)
	add := func(delta doc) doc {
		return doc{"choices": []any{doc{"index": 0, "delta": delta, "finish_reason": nil}}}
	}
	events = []any{add(doc{"role": "assistant", "content": nil, "refusal": nil})}
	for _, key := range []string{"content", "refusal"} {
		events = append(events, halves(text(message, key), func(half string) doc { return add(doc{key: half}) })...)
	}
	calls, _ := message["tool_calls"].([]any)
	for i, call := range calls {
		begin := doc{"index": i, "id": text(call, "id"), "type": "function", "function": doc{"name": text(call, "function", "name"), "arguments": ""}}
		events = append(events, add(doc{"tool_calls": []any{begin}}))
		events = append(events, halves(text(call, "function", "arguments"), func(half string) doc {
			return add(doc{"tool_calls": []any{doc{"index": i, "function": doc{"arguments": half}}}})
		})...)
	}
	return append(events, doc{"choices": []any{doc{"index": 0, "delta": doc{}, "finish_reason": dig(response, "choices", 0, "finish_reason")}}}, doc{"choices": []any{}, "usage": doc{}}), []any{message}
}

func splitResponses(response doc) (events, own []any) {
	own, _ = response["output"].([]any)
	response["status"] = "completed"
	events = []any{doc{"type": "response.created", "response": doc{"status": "in_progress", "output": []any{}}}}
	for key, kind := range map[string]string{"text": "response.output_text.delta", "refusal": "response.refusal.delta"} {
		events = append(events, halves(text(own, 0, "content", 0, key), func(half string) doc { return doc{"type": kind, "delta": half} })...)
	}
	return append(events, doc{"type": "response.completed", "response": response}), own
}

func splitAnthropic(response doc) (events, own []any) {
	content, _ := response["content"].([]any)
	events = []any{doc{"type": "message_start", "message": doc{"role": "assistant", "content": []any{}, "stop_reason": nil}}, doc{"type": "ping"}}
	for i, block := range content {
		begin := maps.Clone(block.(doc))
		delta := func(kind, member string) func(string) doc {
			return func(half string) doc {
				return doc{"type": "content_block_delta", "index": i, "delta": doc{"type": kind, member: half}}
			}
		}
		var parts []any
		if begin["input"] != nil {
			parts = halves(asText(begin["input"]), delta("input_json_delta", "partial_json"))
			begin["input"] = doc{}
		} else if begin["text"] != nil {
			parts = halves(text(block, "text"), delta("text_delta", "text"))
			begin["text"] = ""
		}
		events = append(append(append(events, doc{"type": "content_block_start", "index": i, "content_block": begin}), parts...), doc{"type": "content_block_stop", "index": i})
	}
	return append(events, doc{"type": "message_delta", "delta": doc{"stop_reason": response["stop_reason"]}}, doc{"type": "message_stop"}),
		[]any{doc{"role": "assistant", "content": content}}
}

func splitGemini(response doc) (events, own []any) {
	candidate, _ := dig(response, "candidates", 0).(doc)
	parts, _ := dig(candidate, "content", "parts").([]any)
	for _, part := range append(parts, doc{"text": ""}) {
		events = append(events, doc{"candidates": []any{doc{"content": doc{"role": "model", "parts": []any{part}}}}})
	}
	return append(events, doc{"candidates": []any{doc{"finishReason": candidate["finishReason"]}}}), []any{candidate["content"]}
}

func writeNote(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("the plum is ripe\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// ten is the API of a provider, with a model that makes ten calls at once, and says done once
// they are answered: nine by the note, the last by the refusal of the user.
func ten(calls, done any, messages string) http.Handler {
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
			_ = json.NewEncoder(w).Encode(done)
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
		doc{"choices": []any{doc{"finish_reason": "stop", "message": doc{"role": "assistant", "content": "Read."}}}}, "messages")
}

func tenResponses() http.Handler {
	calls := tenCalls(func(id, name string, params doc) doc {
		return doc{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": name, "arguments": asText(params), "status": "completed"}
	})
	return ten(doc{"output": calls}, doc{"output": []any{doc{"type": "message", "role": "assistant", "content": []any{doc{"type": "output_text", "text": "Read."}}}}}, "input")
}

func tenAnthropic() http.Handler {
	calls := tenCalls(func(id, name string, params doc) doc {
		return doc{"type": "tool_use", "id": id, "name": name, "input": params}
	})
	return ten(doc{"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": calls},
		doc{"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": []any{doc{"type": "text", "text": "Read."}}}, "messages")
}

func tenGemini() http.Handler {
	calls := tenCalls(func(_, name string, params doc) doc { return doc{"functionCall": doc{"name": name, "args": params}} })
	return ten(doc{"candidates": []any{doc{"finishReason": "STOP", "content": doc{"role": "model", "parts": calls}}}},
		doc{"candidates": []any{doc{"finishReason": "STOP", "content": doc{"role": "model", "parts": []any{doc{"text": "Read."}}}}}}, "contents")
}
