package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// answers writes, for each format, a response with one call f of id x, or with text alone,
// that ended for a reason: as a whole and as a stream.
var answers = map[string]struct {
	whole, stream func(reason string, calls bool) string
}{
	"openai": {
		func(reason string, calls bool) string {
			return `{"choices":[{"finish_reason":"` + reason + `","message":` + pick(calls, `{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]}`, `{"content":"hi","tool_calls":null}`) + `}]}`
		},
		func(reason string, calls bool) string {
			return `data: {"choices":[{"index":0,"delta":` + pick(calls, `{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, `{"content":"hi"}`) + `}]}` + "\n\n" +
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\ndata: [DONE]\n\n"
		},
	},
	"openai-responses": {
		func(status string, calls bool) string { return responseOf(status, calls, "") },
		func(status string, calls bool) string {
			kind, _, _ := strings.Cut(status, ":")
			return `data: {"type":"response.created","response":{"status":"in_progress","output":[]}}` + "\n\n" +
				pick(calls, `data: {"type":"response.output_item.done","output_index":0,"item":`+responseCall+`}`+"\n\n", "") +
				`data: {"type":"response.` + kind + `","response":` + responseOf(status, false, `[]`) + `}` + "\n\n"
		},
	},
	"anthropic": {
		func(reason string, calls bool) string {
			return `{"type":"message","role":"assistant","stop_reason":"` + reason + `","content":[` + pick(calls, `{"type":"tool_use","id":"x","name":"f","input":{}}`, `{"type":"text","text":"hi"}`) + `]}`
		},
		func(reason string, calls bool) string {
			return `data: {"type":"message_start","message":{"role":"assistant","content":[],"stop_reason":null}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":` + pick(calls, `{"type":"tool_use","id":"x","name":"f","input":{}}`, `{"type":"text","text":"hi"}`) + `}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"` + reason + `"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
		},
	},
	"gemini-interactions": {
		func(status string, calls bool) string {
			return `{"object":"interaction","status":"` + status + `","steps":[` + pick(calls, `{"type":"function_call","id":"x","name":"f","arguments":{}}`, `{"type":"model_output","content":[{"type":"text","text":"hi"}]}`) + `]}`
		},
		func(status string, calls bool) string {
			return `data: {"event_type":"interaction.created","interaction":{"id":"v","status":"in_progress"}}` + "\n\n" +
				`data: {"event_type":"step.start","index":0,"step":` + pick(calls, `{"type":"function_call","id":"x","name":"f","arguments":{}}`, `{"type":"model_output"}`) + `}` + "\n\n" +
				`data: {"event_type":"step.stop","index":0}` + "\n\n" + `data: {"event_type":"interaction.completed","interaction":{"id":"v","status":"` + status + `"}}` + "\n\n"
		},
	},
	"gemini": {
		func(reason string, calls bool) string { return geminiOf(reason, calls) },
		func(reason string, calls bool) string {
			return `data: {"candidates":[{"content":{"parts":[{"text":""}]}}]}` + "\n\ndata: " + geminiOf(reason, calls) + "\n\n" + `data: {"usageMetadata":{}}` + "\n\n"
		},
	},
	"bedrock": {
		func(reason string, calls bool) string {
			return `{"output":{"message":{"role":"assistant","content":[` + pick(calls, `{"toolUse":{"toolUseId":"x","name":"f","input":{}}}`, `{"text":"hi"}`) + `]}},"stopReason":"` + reason + `"}`
		},
		func(reason string, calls bool) string {
			return `{"messageStart":{"role":"assistant"}}` + "\n" +
				pick(calls, `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"x","name":"f"}}}}`, `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"hi"}}}`) + "\n" +
				`{"messageStop":{"stopReason":"` + reason + `"}}` + "\n"
		},
	},
}

const responseCall = `{"type":"function_call","id":"i","call_id":"x","name":"f","arguments":"{}"}`

// responseOf writes a response with a status; "incomplete:" precedes the reason for it.
func responseOf(status string, calls bool, output string) string {
	status, reason, _ := strings.Cut(status, ":")
	if output == "" {
		output = `[` + pick(calls, responseCall, `{"type":"message","content":[{"type":"output_text","text":"hi"}]}`) + `]`
	}
	return `{"status":"` + status + `","error":null,"incomplete_details":` + pick(reason != "", `{"reason":"`+reason+`"}`, "null") + `,"output":` + output + `}`
}

func geminiOf(reason string, calls bool) string {
	return `{"candidates":[{"content":` + pick(calls, `{"parts":[{"functionCall":{"name":"f","args":{}}}]}`, `{}`) + `,"finishReason":"` + reason + `","finishMessage":"why"}]}`
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// A response that has not ended well is an error or answered in words, never nothing; and the
// stream is read like the whole.
func TestEnded(t *testing.T) {
	const (
		runs   = "f"
		cut    = "f!"
		none   = ""
		early  = "error: before any call"
		later  = "error: is not finished"
		failed = "error: nothing was run"
		empty  = "error: has no call"
	)
	tests := []struct{ formats, reasons, calls, text string }{
		{"openai mistral", "stop", runs, none},
		{"openai", "eos", runs, none},
		{"openai mistral", "tool_calls", runs, empty},
		{"openai mistral", "length", cut, early},
		{"mistral", "model_length", cut, early},
		{"openai mistral", "content_filter error insufficient_system_resource sensitive a_new_reason", failed, failed},
		{"openai-responses", "completed incomplete:steered", runs, none},
		{"openai-responses", "incomplete:max_output_tokens", cut, early},
		{"openai-responses", "incomplete", cut, early},
		{"openai-responses", "incomplete:content_filter cancelled failed", failed, failed},
		{"anthropic", "end_turn stop_sequence", runs, none},
		{"anthropic", "tool_use", runs, empty},
		{"anthropic", "max_tokens model_context_window_exceeded", cut, early},
		{"anthropic", "pause_turn", later, later},
		{"anthropic", "refusal a_new_reason", failed, failed},
		{"gemini", "STOP", runs, none},
		{"gemini", "MAX_TOKENS", cut, early},
		{"gemini", "SAFETY RECITATION LANGUAGE OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS", failed, failed},
		{"gemini-interactions", "completed", runs, none},
		{"gemini-interactions", "requires_action", runs, empty},
		{"gemini-interactions", "incomplete", cut, early},
		{"gemini-interactions", "requires_continuation", later, later},
		{"gemini-interactions", "failed cancelled budget_exceeded a_new_status", failed, failed},
		{"bedrock", "end_turn stop_sequence", runs, none},
		{"bedrock", "tool_use", runs, empty},
		{"bedrock", "max_tokens", cut, early},
		{"bedrock", "guardrail_intervened content_filtered malformed_tool_use malformed_model_output", failed, failed},
	}
	for _, tt := range tests {
		for _, format := range strings.Fields(tt.formats) {
			as := answers[strings.ReplaceAll(format, "mistral", "openai")]
			for _, reason := range strings.Fields(tt.reasons) {
				for _, calls := range []bool{true, false} {
					want := pick(calls, tt.calls, tt.text)
					for how, data := range map[string]string{"whole": as.whole(reason, calls), "stream": as.stream(reason, calls)} {
						checkRead(t, fmt.Sprintf("%s %s %s, calls: %t", format, reason, how, calls), format, data, want)
					}
				}
			}
		}
	}
}

// checkRead compares the names of the calls in a response, those that may not run with a "!",
// or the error.
func checkRead(t *testing.T, name, format, data, want string) {
	t.Helper()
	turn, err := decode(t, format, data)
	var got []string
	if err == nil {
		for _, c := range turn.Calls {
			got = append(got, c.Name+pick(c.Fault != "", "!", ""))
		}
	}
	reason, fails := strings.CutPrefix(want, "error: ")
	switch {
	case fails && (err == nil || !strings.Contains(err.Error(), reason)):
		t.Errorf("%s: got calls %q and error %v, want an error with %q", name, got, err, reason)
	case !fails && (err != nil || strings.Join(got, " ") != want):
		t.Errorf("%s: got calls %q and error %v, want %q", name, got, err, want)
	}
}

// What has no calls because it is something else is an error that says what it is.
func TestDecodeSays(t *testing.T) {
	tests := []struct{ name, format, data, want string }{
		{"queued", "openai-responses", responseOf("queued", false, "[]"), "is not finished (queued)"},
		{"in progress", "openai-responses", responseOf("in_progress", true, ""), "is not finished (in_progress)"},
		{"in progress", "gemini-interactions", `{"object":"interaction","status":"in_progress","steps":[]}`, "is not finished (in_progress)"},
		{"a stream in progress", "gemini-interactions", `data: {"event_type":"interaction.status_update","status":"in_progress"}`, "before the response was finished"},
		{"a stream that failed", "gemini-interactions", `data: {"event_type":"error","error":{"code":"x","message":"Upstream"}}`, "the API returned an error: Upstream"},
		{"an item in progress", "openai-responses", `[{"type":"function_call","status":"in_progress","call_id":"x","name":"f","arguments":""}]`, "is not finished (in_progress)"},
		{"refused", "openai-responses", `{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I will not"}]}]}`, "ended with refusal (I will not)"},
		{"refused", "openai", `{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"I will not"}}]}`, "ended with refusal (I will not)"},
		{"refused in parts", "openai", `data: {"choices":[{"delta":{"refusal":"I will"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"refusal":" not"},"finish_reason":"stop"}]}`, "ended with refusal (I will not)"},
		{"a choice that failed", "openai", `{"choices":[{"finish_reason":"error","error":{"code":502,"message":"Upstream"},"message":{"content":""}}]}`, "the API returned an error: Upstream"},
		{"a choice of a stream that failed", "openai", `data: {"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"message":"Upstream"}}]}`, "the API returned an error: Upstream"},
		{"no choices", "openai", `{"id":"c","choices":[]}`, "choices is empty"},
		{"no candidates", "gemini", `{"candidates":[]}`, "candidates is empty"},
		{"only what it cost", "gemini", `{"usageMetadata":{"promptTokenCount":9},"modelVersion":"gemini-2.5-pro"}`, "no candidates"},
		{"blocked", "gemini", `{"candidates":[],"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, "ended with PROHIBITED_CONTENT"},
		{"why it is malformed", "gemini", geminiOf("MALFORMED_FUNCTION_CALL", false), "ended with MALFORMED_FUNCTION_CALL (why)"},
		{"refused", "anthropic", `{"type":"message","role":"assistant","content":[],"stop_reason":"refusal","stop_details":{"explanation":"no"}}`, "ended with refusal (no)"},
		{"Ollama", "openai", `{"model":"q","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop"}`, "Ollama's own API"},
		{"Ollama in parts", "openai", `{"model":"q","message":{"role":"assistant","content":"a"},"done":false}` + "\n" + `{"model":"q","message":{"role":"assistant","content":""},"done":true}`, "Ollama's own API"},
		{"Ollama, generated", "mistral", `{"model":"q","response":"hi","done":true}`, "Ollama's own API"},
		{"a batch", "openai", `{"id":"b","custom_id":"1","response":{"status_code":200,"body":{"choices":[]}},"error":null}`, "send its response.body"},
		{"a batch", "anthropic", `{"custom_id":"1","result":{"type":"succeeded","message":{"type":"message","role":"assistant","content":[]}}}` + "\n" + `{"custom_id":"2"}`, "send its result.message"},
		{"a batch", "bedrock", `{"recordId":"1","modelInput":{},"modelOutput":{}}`, "send its modelOutput"},
		{"a batch", "gemini", `{"key":"1","response":{"candidates":[]}}`, "in its member response"},
		{"declarations", "openai-responses", `[{"type":"function","name":"f","parameters":{}}]`, "not in this format"},
		{"declarations", "gemini-interactions", `[{"type":"function","name":"f","parameters":{}}]`, "not in this format"},
		{"declarations", "bedrock", `[{"toolSpec":{"name":"f","inputSchema":{"json":{}}}}]`, "not in this format"},
		{"two calls, no ids", "openai", `[{"id":"","function":{"name":"f"}},{"function":{"name":"g"}}]`, "2 calls, of which at least one has no id"},
		{"two calls, one id", "anthropic", `[{"type":"tool_use","id":"x","name":"f"},{"type":"tool_use","name":"g"}]`, "2 calls, of which at least one has no id"},
		{"two calls, one id", "openai-responses", `[{"type":"function_call","call_id":"x","name":"f"},{"type":"function_call","call_id":"","name":"g"}]`, "no call_id"},
		{"two calls, no ids", "bedrock", `[{"toolUse":{"name":"f"}},{"toolUse":{"name":"g"}}]`, "no toolUseId"},
		{"two calls, no ids", "mistral", `[{"id":"null","function":{"name":"f"}},{"id":"null","function":{"name":"g"}}]`, "no id"},
	}
	for _, tt := range tests {
		checkRead(t, tt.name, tt.format, tt.data, "error: "+tt.want)
	}
}

// A single call without an id gets one of a form that each API takes.
func TestDecodeWithoutID(t *testing.T) {
	for _, tt := range []struct{ format, data string }{
		{"openai", `[{"id":"","function":{"name":"f","arguments":"{}"}}]`},
		{"openai", `[{"id":{"a":1},"function":{"name":"f"}}]`},
		{"openai", `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`},
		{"openai", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":null,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`},
		{"openai-responses", `[{"type":"function_call","name":"f"}]`},
		{"gemini-interactions", `{"type":"function_call","name":"f","arguments":{}}`},
		{"anthropic", `{"type":"tool_use","id":"","name":"f","input":{}}`},
		{"bedrock", `{"toolUse":{"name":"f","input":{}}}`},
		{"mistral", `[{"id":"null","function":{"name":"f","arguments":"{}"}}]`},
	} {
		turn, err := decode(t, tt.format, tt.data)
		if err != nil || len(turn.Calls) != 1 {
			t.Errorf("%s %s: %v", tt.format, tt.data, err)
			continue
		}
		id := asText(turn.Calls[0].ID())
		if len(id) != 9 || strings.Trim(id, "abcdef0123456789") != "" {
			t.Errorf("%s %s: id %q", tt.format, tt.data, id)
		}
		if message := string(turn.Message()); message != "" && !strings.Contains(message, `"`+id+`"`) {
			t.Errorf("%s %s: message %s without id %q", tt.format, tt.data, message, id)
		}
	}
}

// Some models number their calls; the answers repeat the numbers.
func TestDecodeNumbered(t *testing.T) {
	for _, tt := range []struct{ format, data, key string }{
		{"openai", `[{"id":1,"function":{"name":"f"}},{"id":2,"function":{"name":"g"}}]`, "tool_call_id"},
		{"openai-responses", `[{"type":"function_call","call_id":1,"name":"f"},{"type":"function_call","call_id":2,"name":"g"}]`, "call_id"},
		{"anthropic", `[{"type":"tool_use","id":1,"name":"f"},{"type":"tool_use","id":2,"name":"g"}]`, "tool_use_id"},
		{"bedrock", `[{"toolUse":{"toolUseId":1,"name":"f"}},{"toolUse":{"toolUseId":2,"name":"g"}}]`, "toolUseId"},
		{"mistral", `[{"id":1,"function":{"name":"f"}},{"id":2,"function":{"name":"g"}}]`, "tool_call_id"},
	} {
		turn, err := decode(t, tt.format, tt.data)
		if err != nil {
			t.Error(err)
			continue
		}
		out, err := jsonx.Marshal(turn.Reply(nil))
		if err != nil || !strings.Contains(string(out), `"`+tt.key+`":1`) || !strings.Contains(string(out), `"`+tt.key+`":2`) {
			t.Errorf("%s: %s, %v", tt.format, out, err)
		}
	}
}
