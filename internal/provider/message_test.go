package provider

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// messageOf returns the model's message in a response or a stream.
func messageOf(t *testing.T, format string, data []byte) string {
	t.Helper()
	f, err := LookupCallFormat(format)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := f.Decode(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return string(turn.Message())
}

// A stream is put together to the message that the unary answer has: its texts, reasoning,
// signatures and calls.
func TestMessageOfStream(t *testing.T) {
	for _, tt := range []struct{ file, format, want string }{
		{"anthropic.sse", "anthropic", `{"role":"assistant","content":[{"signature":"c2ln","thinking":"Two tools.","type":"thinking"},{"text":"I add é","type":"text"},` +
			`{"id":"toolu_1","input":{"a":2,"b":3},"name":"add","type":"tool_use"},{"id":"toolu_2","input":{"text":"héllo"},"name":"echo","type":"tool_use"}]}`},
		{"gemini.sse", "gemini", `{"role":"model","parts":[{"text":"I add é"},{"functionCall":{"id":"fc_1","name":"add","args":{"a":2,"b":3}},"thoughtSignature":"c2ln"},` +
			`{"functionCall":{"id":"fc_2","name":"echo","args":{"text":"héllo"}}}]}`},
		{"bedrock.jsonl", "bedrock", `{"role":"assistant","content":[{"text":"I add é"},{"toolUse":{"input":{"a":2,"b":3},"name":"add","toolUseId":"tooluse_1"}},` +
			`{"toolUse":{"input":{"text":"héllo"},"name":"echo","toolUseId":"tooluse_2"}}]}`},
		{"openai.sse", "openai", `{"content":"I add é","role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\": 2, \"b\": 3}","name":"add"},"id":"call_1","type":"function"},` +
			`{"function":{"arguments":"{\"text\":\"h\\u00e9llo\\n\"}","name":"echo"},"id":"call_2","type":"function"}]}`},
		{"gemini-interactions.sse", "gemini-interactions", `[{"signature":"c2ln","summary":[{"text":"Two tools.","type":"text"}],"type":"thought"},{"content":[{"text":"I add é","type":"text"}],"type":"model_output"},` +
			`{"arguments":{"a":2,"b":3},"id":"call_1","name":"add","type":"function_call"},{"arguments":{"text":"héllo"},"id":"call_2","name":"echo","type":"function_call"}]`},
		{"openai-responses.sse", "openai-responses", `[{"id":"rs_1","summary":[],"type":"reasoning"},{"arguments":"{\"a\":2,\"b\":3}","call_id":"call_1","id":"fc_1","name":"add","status":"completed","type":"function_call"},` +
			`{"arguments":"{\"text\":\"héllo\"}","call_id":"call_2","id":"fc_2","name":"echo","status":"completed","type":"function_call"}]`},
	} {
		data, err := os.ReadFile(filepath.Join("../../testdata/providers/streams", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, messageOf(t, tt.format, data)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.file, diff)
		}
	}
}

// What only some streams have.
func TestMessageOfStreamParts(t *testing.T) {
	for name, tt := range map[string]struct{ format, stream, want string }{
		"no calls": {"openai", `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"b","reasoning_content":"why"},"finish_reason":"stop"}]}` + "\n\n", `{"content":"ab","reasoning_content":"why","role":"assistant"}`},
		"a custom tool": {"openai", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"custom","custom":{"name":"sql","input":"select "}}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"custom":{"input":"1"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
			`{"content":null,"role":"assistant","tool_calls":[{"custom":{"input":"select 1","name":"sql"},"id":"c","type":"custom"}]}`},
		"a character in two parts": {"openai", `data: {"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"\udc4db \udc4d"},"finish_reason":"stop"}]}` + "\n\n", `{"content":"a👍b �","role":"assistant"}`},
		"calls without a type": {"openai", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"a","arguments":"{}"}},` +
			`{"index":1,"id":"d","custom":{"name":"b","input":"x"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
			`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"a"},"id":"c","type":"function"},{"custom":{"input":"x","name":"b"},"id":"d","type":"custom"}]}`},
		"what else a call has": {"openai", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"a","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]},"finish_reason":"stop"}]}` + "\n\n",
			`{"content":null,"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"s"}},"function":{"arguments":"{}","name":"a"},"id":"c","type":"function"}]}`},
		"reasoning in a list by index": {"openai", `data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"t","index":0,"text":"a","format":"f"},{"type":"u","index":0,"data":"x"}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"t","index":1,"text":"c"},{"type":"t","index":0,"text":"b","format":"f","signature":null}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"t","index":0,"signature":"s"}]},"finish_reason":"stop"}]}` + "\n\n",
			`{"content":null,"reasoning_details":[{"format":"f","index":0,"signature":"s","text":"ab","type":"t"},{"data":"x","index":0,"type":"u"},{"index":1,"text":"c","type":"t"}],"role":"assistant"}`},
		"reasoning again with its signature": {"openai", `data: {"choices":[{"index":0,"delta":{"thinking_blocks":[{"type":"thinking","thinking":"a"}]}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"thinking_blocks":[{"type":"thinking","thinking":"b"}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"thinking_blocks":[{"type":"thinking","thinking":"ab","signature":"s"}]},"finish_reason":"stop"}]}` + "\n\n", `{"content":null,"role":"assistant","thinking_blocks":[{"signature":"s","thinking":"ab","type":"thinking"}]}`},
		"reasoning in a list without an index": {"openai", `data: {"choices":[{"index":0,"delta":{"thinking_blocks":[{"type":"thinking","thinking":"a"}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"thinking_blocks":[{"type":"thinking","thinking":"b","signature":"s"},{"type":"thinking","thinking":"c"},{"type":"redacted_thinking","data":"x"},{"type":"redacted_thinking","data":"y"}]},"finish_reason":"stop"}]}` + "\n\n",
			`{"content":null,"role":"assistant","thinking_blocks":[{"signature":"s","thinking":"ab","type":"thinking"},{"thinking":"c","type":"thinking"},{"data":"x","type":"redacted_thinking"},{"data":"y","type":"redacted_thinking"}]}`},
		"content that is a list at times": {"mistral", `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"b"}]}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"c"}]}]}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"d"},"finish_reason":"stop"}]}` + "\n\n",
			`{"content":[{"text":"a","type":"text"},{"thinking":[{"text":"bc","type":"text"}],"type":"thinking"},{"text":"d","type":"text"}],"role":"assistant"}`},
		"lists deep in lists": {"openai", `data: {"choices":[{"delta":{"l":[{"index":1,"l":[{"index":1,"text":"a","l":[{"index":1,"text":"a"}]}]}]}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"l":[{"index":1,"l":[{"index":1,"text":"b","l":[{"index":1,"text":"b"}]}]}]},"finish_reason":"stop"}]}` + "\n\n",
			`{"content":null,"l":[{"index":1,"l":[{"index":1,"l":[{"index":1,"text":"b"}],"text":"ab"}]}],"role":"assistant"}`},
		"the message so far": {"openai", `data: {"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"delta":{"content":"a"}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"message":{"role":"assistant","content":"ab"},"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n", `{"content":"ab","role":"assistant"}`},
		"an index twice": {"anthropic", `data: {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"w","input":{}}}` + "\n\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}` + "\n\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"f","input":{}}}` + "\n\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
			`{"role":"assistant","content":[{"id":"s","input":{"q":1},"name":"w","type":"server_tool_use"},{"id":"x","input":{"a":1},"name":"f","type":"tool_use"}]}`},
		"items that are none": {"gemini-interactions", `data: {"event_type":"step.start","index":0,"step":{"type":"thought","summary":["a"]}}` + "\n\n" + `data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":"b"}}` + "\n\n" +
			`data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"c"}}}` + "\n\n" + `data: {"event_type":"interaction.completed","interaction":{"status":"completed"}}` + "\n\n", `[{"summary":[{"text":"c","type":"text"}],"type":"thought"}]`},
		"compaction and citations": {"anthropic", `data: {"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"a","encrypted_content":"x"}}` + "\n\n" + `data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"t","citations":[]}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"page_location","cited_text":"b"}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"page_location","cited_text":"c"}}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
			`{"role":"assistant","content":[{"content":"a","encrypted_content":"x","type":"compaction"},{"citations":[{"cited_text":"b","type":"page_location"},{"cited_text":"c","type":"page_location"}],"text":"t","type":"text"}]}`},
		"what the server ran": {"bedrock", `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"x","name":"s","type":"server_tool_use"}}}}` + "\n" +
			`{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolResult":{"toolUseId":"x","status":"success"}}}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolResult":[{"text":"a"}]}}}` + "\n" +
			`{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolResult":[{"text":"b"},{"json":{"c":1}}]}}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"reasoningContent":{"redactedContent":"eA=="}}}}` + "\n" + `{"messageStop":{"stopReason":"end_turn"}}`,
			`{"role":"assistant","content":[{"toolUse":{"input":{},"name":"s","toolUseId":"x","type":"server_tool_use"}},{"toolResult":{"content":[{"text":"ab"},{"json":{"c":1}}],"status":"success","toolUseId":"x"}},{"reasoningContent":{"redactedContent":"eA=="}}]}`},
		"thoughts apart": {"gemini", `[{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]},{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},` +
			`{"candidates":[{"content":{"parts":[{"text":"b"},{"text":"c","thoughtSignature":"s"}]},"finishReason":"STOP"}]}]`,
			`{"role":"model","parts":[{"text":"hm","thought":true},{"text":"ab"},{"text":"c","thoughtSignature":"s"}]}`},
		"reasoning": {"bedrock", `{"messageStart":{"role":"assistant"}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}}` + "\n" +
			`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s"}}}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"a"}}}` + "\n" +
			`{"messageStop":{"stopReason":"end_turn"}}`, `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"signature":"s","text":"hm"}}},{"text":"a"}]}`},
	} {
		if diff := cmp.Diff(tt.want, messageOf(t, tt.format, []byte(tt.stream))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A stream of many parts or items costs no more than its length.
func TestLongStreams(t *testing.T) {
	const parts = 10_000
	for format, s := range map[string]struct{ begin, part, end string }{
		"openai":           {"", `{"choices":[{"index":0,"delta":{"content":"word "}}]}`, `{"choices":[{"index":0,"finish_reason":"stop"}]}`},
		"mistral":          {"", `{"choices":[{"index":0,"delta":{"content":"word "}}]}`, `{"choices":[{"index":0,"finish_reason":"stop"}]}`},
		"mistral ":         {"", `{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"word "}]}]}}]}`, `{"choices":[{"index":0,"finish_reason":"stop"}]}`},
		"anthropic ":       {`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"word "}}}`, `{"type":"message_stop"}`},
		"anthropic":        {`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}`, `{"type":"message_stop"}`},
		"gemini":           {"", `{"candidates":[{"content":{"parts":[{"text":"word "}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
		"bedrock":          {"", `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"word "}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
		"openai-responses": {"", `{"type":"response.output_item.done","item":{"type":"message","id":"INDEX","content":[{"text":"word "}]}}`, `{"type":"response.completed"}`},
		"openai ": {`{"choices":[{"delta":{"tool_calls":[{"index":-1,"id":"x","function":{"name":"f","arguments":"{\"a\":\""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":INDEX,"function":{"name":"","arguments":"word "}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"finish_reason":"tool_calls"}]}`},
		"gemini-interactions": {`{"event_type":"step.start","index":0,"step":{"type":"model_output"}}`,
			`{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"word "}}`, `{"event_type":"interaction.completed","interaction":{"status":"completed"}}`},
	} {
		var all strings.Builder
		all.WriteString(s.begin + "\n\n")
		for i := range parts {
			all.WriteString(strings.ReplaceAll(s.part, "INDEX", strconv.Itoa(i)) + "\n\n")
		}
		stream := all.String() + s.end
		if format != "bedrock" {
			stream = strings.ReplaceAll("\n\n"+stream, "\n\n{", "\n\ndata: {") + "\n\n"
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		message := messageOf(t, strings.TrimSpace(format), []byte(stream))
		runtime.ReadMemStats(&after)
		if n := strings.Count(message, "word "); n != parts {
			t.Errorf("%s: the text has %d of %d words", format, n, parts)
		}
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 100 {
			t.Errorf("%s: %d MiB were allocated for a stream of %d bytes", format, allocated, len(stream))
		}
	}
}

// A response has its message as it was written, numbers too large for a float included.
func TestMessageOfResponse(t *testing.T) {
	for _, tt := range []struct{ format, response, want string }{
		{"openai", `{"choices":[{"message":{"role":"assistant","content":"x","n":12345678901234567890},"finish_reason":"stop"}]}`, `{"role":"assistant","content":"x","n":12345678901234567890}`},
		{"openai", `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":"{}"}}]}`, `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":"{}"}}]}`},
		{"openai", `[{"id":"c","type":"function","function":{"name":"a","arguments":"{}"}}]`, ""},
		{"anthropic", `{"role":"assistant","stop_reason":"tool_use","content":[{"type":"tool_use","id":"c","name":"a","input":{"x":"\ud99c","n":1e2}}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"a","input":{"x":"�","n":1e2}}]}`},
		{"anthropic", `{"id":"m","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"x"}]}`, `{"role":"assistant","content":[{"type":"text","text":"x"}]}`},
		{"gemini", `{"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]},"finishReason":"STOP"}]}`, `{"role":"model","parts":[{"text":"x"}]}`},
		{"bedrock", `{"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"stopReason":"end_turn"}`, `{"role":"assistant","content":[{"text":"x"}]}`},
		{"gemini-interactions", `{"status":"completed","steps":[{"type":"model_output"}]}`, `[{"type":"model_output"}]`},
		{"gemini-interactions", `{"status":"incomplete","steps":[{"type":"function_call","id":"x","name":"f","arguments":"{\"a"}]}`, `[{"arguments":{},"id":"x","name":"f","type":"function_call"}]`},
		{"openai-responses", `{"status":"completed","output":[{"type":"message","content":[]}]}`, `[{"type":"message","content":[]}]`},
		{"anthropic", `{"role":"assistant","content":[{"type":"text","text":""},{"type":"tool_use","id":"x","name":"f","input":{}}]}`, `{"content":[{"type":"tool_use","id":"x","name":"f","input":{}}],"role":"assistant"}`},
		{"bedrock", `{"output":{"message":{"role":"assistant","content":[{"text":"\n"},{"toolUse":{"toolUseId":"x","name":"f","input":{}}}]}}}`, `{"content":[{"toolUse":{"toolUseId":"x","name":"f","input":{}}}],"role":"assistant"}`},
		{"gemini", `{"candidates":[{"content":{"role":"model","parts":[{"text":""},{"text":"","thoughtSignature":"s"},{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`,
			`{"parts":[{"text":"","thoughtSignature":"s"},{"functionCall":{"name":"f"}}],"role":"model"}`},
		{"anthropic", `[{"type":"tool_use","id":"x","name":"f","input":"{\"a"},{"type":"tool_use","id":"y","name":"f","input":"{\"a\":1}"}]`,
			`{"content":[{"id":"x","input":{},"name":"f","type":"tool_use"},{"id":"y","input":{"a":1},"name":"f","type":"tool_use"}],"role":"assistant"}`},
		{"bedrock", `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"x","name":"f","input":""}}]}}}`, `{"content":[{"toolUse":{"input":{},"name":"f","toolUseId":"x"}}],"role":"assistant"}`},
		{"anthropic", `{"role":"assistant","content":[{"type":"text","text":""}]}`, `{"role":"assistant","content":[{"type":"text","text":""}]}`},
		{"openai", `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"a.b c","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"","arguments":"{}"}}]}`,
			`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"a_b_c","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"_","arguments":"{}"}}]}`},
		{"openai", `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"a","arguments":""}},{"id":"d","function":{"name":"a","arguments":"{\"a"}},{"id":"e","function":{"name":"a","arguments":"\"{}\""}},{"id":"f","function":{"name":"a","arguments":"[]"}},{"id":"g","function":{"name":"a","arguments":" {\"a\":1}"}}]}`,
			`{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"a"},"id":"c"},{"function":{"arguments":"{}","name":"a"},"id":"d"},{"function":{"arguments":"{}","name":"a"},"id":"e"},{"function":{"arguments":"{}","name":"a"},"id":"f"},{"id":"g","function":{"name":"a","arguments":" {\"a\":1}"}}]}`},
		{"openai-responses", `[{"type":"reasoning","id":"r"},{"type":"function_call","call_id":"c","name":"a","arguments":"{\"a"}]`, `[{"type":"reasoning","id":"r"},{"arguments":"{}","call_id":"c","name":"a","type":"function_call"}]`},
		{"mistral", `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"a\" p=\"x","arguments":{}}}]}`, `{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"a__p__x","arguments":{}}}]}`},
		{"anthropic", `[{"type":"tool_use","id":"c","name":"a"}]`, `{"content":[{"id":"c","input":{},"name":"a","type":"tool_use"}],"role":"assistant"}`},
		{"bedrock", `[{"toolUse":{"toolUseId":"c","name":"a","input":null}}]`, `{"content":[{"toolUse":{"input":{},"name":"a","toolUseId":"c"}}],"role":"assistant"}`},
		{"openai-responses", `[{"type":"function_call","call_id":"c","name":"a.b","arguments":"{}"}]`, `[{"type":"function_call","call_id":"c","name":"a_b","arguments":"{}"}]`},
		{"anthropic", `{"role":"assistant","content":[{"type":"text","text":"a.b"},{"type":"tool_use","id":"x","name":"a.b","input":{"name":"a.b"}}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"a.b"},{"type":"tool_use","id":"x","name":"a_b","input":{"name":"a.b"}}]}`},
		{"bedrock", `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"x","name":"$f","input":{}}}]}}}`, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"x","name":"_f","input":{}}}]}`},
		{"gemini", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a b"}}]},"finishReason":"STOP"}]}`, `{"parts":[{"functionCall":{"name":"a b"}}]}`},
		{"openai", `{"choices":[{"message":{"role":"assistant","toolCalls":[{"id":"c","function":{"name":"a.b","arguments":"{}"}}]}}]}`, `{"role":"assistant","toolCalls":[{"id":"c","function":{"name":"a_b","arguments":"{}"}}]}`},
		{"openai-responses", `{"output":[{"type":"function_call","callId":"c","name":"a","arguments":"{}"}]}`, `[{"type":"function_call","callId":"c","name":"a","arguments":"{}"}]`},
		{"openai-responses", `{"output":[{"type":"message","content":[{"type":"output_text","text":"x","parsed":null}]},{"type":"function_call","call_id":"c","name":"a","arguments":"{}","parsed_arguments":null}]}`,
			`[{"content":[{"text":"x","type":"output_text"}],"type":"message"},{"arguments":"{}","call_id":"c","name":"a","type":"function_call"}]`},
		{"mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, ""},
	} {
		if got := messageOf(t, tt.format, []byte(tt.response)); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.format, tt.response, got, tt.want)
		}
	}
}
