package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// streams are the streams that the providers' SDKs join too, with their calls. Those in
// "recorded" came from the APIs.
var streams = []struct{ file, format, calls string }{
	{"openai.sse", "openai", byHand}, {"openai-responses.sse", "openai-responses", byHand}, {"anthropic.sse", "anthropic", byHand}, {"mistral.sse", "mistral", byHand},
	{"gemini.sse", "gemini", byHand}, {"gemini.json", "gemini", byHand}, {"bedrock.jsonl", "bedrock", byHand}, {"bedrock.frames", "bedrock", byHand},
	{"recorded/openai.sse", "openai", recorded}, {"recorded/openai-responses.sse", "openai-responses", recorded}, {"recorded/anthropic.sse", "anthropic", recorded},
	{"recorded/gemini.sse", "gemini", recorded}, {"recorded/mistral.sse", "mistral", `weather {"location":"San Francisco"}`}, {"recorded/bedrock.frames", "bedrock", `get_capital {"country":"France"}`},
}

const (
	byHand   = `add {"a":2,"b":3}, echo {"text":"héllo"}`
	recorded = `add {"a":2,"b":3}, multiply {"a":2,"b":3}`
)

func streamFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/providers/streams", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A stream has the same calls as a response, and one that is cut off anywhere has all of
// them or is an error.
func TestDecodeStream(t *testing.T) {
	read := func(turn *Turn) string {
		var got []string
		for _, c := range turn.Calls {
			got = append(got, c.Name+" "+strings.NewReplacer(`\u00e9`, "é", `\n`, "").Replace(jsonx.Canonical(c.Params))+c.Fault)
		}
		return strings.Join(got, ", ")
	}
	for _, tt := range streams {
		t.Run(tt.file, func(t *testing.T) {
			data := streamFile(t, tt.file)
			turn, err := decode(t, tt.format, string(data))
			if err != nil {
				t.Fatal(err)
			}
			if got := read(turn); got != tt.calls {
				t.Errorf("got %s, want %s", got, tt.calls)
			}
			if filepath.Ext(tt.file) == ".sse" {
				lines := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r", ""), "\n\n", "\n")
				if turn, err = decode(t, tt.format, lines); err != nil || read(turn) != tt.calls {
					t.Errorf("without empty lines: %v", err)
				}
				events := splitSSE(data)
				if turn, err = decode(t, tt.format, joinedBy("\n", events)); err != nil || read(turn) != tt.calls {
					t.Errorf("as JSON Lines: %v", err)
				}
				for n := range events { // as a list
					list, _ := json.Marshal(events[:n+1])
					turn, err := decode(t, tt.format, string(list))
					if err == nil && read(turn) != tt.calls || err != nil && n == len(events)-1 {
						t.Errorf("%d of %d events as a list: %v", n+1, len(events), err)
					}
				}
			}
			finished := 0
			for n := range data {
				turn, err := decode(t, tt.format, string(data[:n]))
				if err != nil {
					continue
				}
				finished++
				if got := read(turn); got != tt.calls {
					t.Fatalf("%d bytes: %s", n, got)
				}
			}
			if finished > len(data)/4 {
				t.Errorf("%d of %d beginnings are taken for whole streams", finished, len(data))
			}
		})
	}
}

func TestDecodeStreamOf(t *testing.T) {
	const usage = `data: {"choices":[],"usage":{}}` + "\n\n"
	chunk := func(delta, finish string) string {
		return `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	block := func(index, content, input string) string {
		return `data: {"type":"content_block_start","index":` + index + `,"content_block":` + content + `}` + "\n\n" +
			`data: {"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":"` + input + `"}}` + "\n\n"
	}
	item := func(event, index, item string) string {
		return `data: {"type":"response.output_item.` + event + `","output_index":` + index + `,"item":` + item + `}` + "\n\n"
	}
	completed := func(output string) string {
		return `data: {"type":"response.completed","response":{"status":"completed","output":` + output + `}}` + "\n\n"
	}
	const stop = `data: {"type":"message_stop"}` + "\n\n"
	frames := string(streamFile(t, "bedrock.frames"))
	tests := []struct{ name, format, data, want string }{
		{"text", "openai", chunk(`{"content":"hi"}`, "null") + chunk(`{}`, `"stop"`) + usage, ""},
		{"calls of one index", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":0,"id":"y","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`), "f{} g{}"},
		{"calls by turns", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f"}},{"index":1,"id":"y","function":{"name":"g","arguments":""}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"[1"}},{"index":0,"function":{"arguments":"{}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"]"}}]}`, `"tool_calls"`), "f{} g[1]"},
		{"the name in each chunk", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"echo","arguments":"{\"s\":"}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"echo","arguments":"1}"}}]}`, "null") + chunk("{}", `"tool_calls"`), `echo{"s":1}`},
		{"the name in parts", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"ec"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"function":{"name":"ho","arguments":"{}"}}]}`, `"stop"`), "echo{}"},
		{"the name so far", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"ec"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"function":{"name":"echo","arguments":"{}"}}]}`, `"stop"`), "echo{}"},
		{"name and id null and empty later", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":"}"}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":null}}]}`, `"tool_calls"`), "f{}"},
		{"another id in each chunk", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"id":"y","function":{"arguments":"}"}}]}`, `"tool_calls"`), "f{}"},
		{"another index in each chunk", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}]}`, "null") + chunk(`{"tool_calls":[{"index":1,"function":{"arguments":":"}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":2,"id":"","function":{"name":null,"arguments":"1}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":3,"id":"y","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`), `f{"a":1} g{}`},
		{"another index after the params", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":1,"function":{"arguments":""}}]}`, `"tool_calls"`), "f{}"},
		{"the id null as text", "mistral", chunk(`{"tool_calls":[{"index":0,"id":"abcdefghi","function":{"name":"f","arguments":"{"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"id":"null","function":{"name":"","arguments":"}"}}]}`, `"tool_calls"`), "f{}"},
		{"the whole call again", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`), "f{}"},
		{"two calls without an index", "openai", chunk(`{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}},{"id":"y","function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`), "f{} f{}"},
		{"two calls of one index without ids", "openai", chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}},{"index":0,"id":"","function":{"name":"g","arguments":""}}]}`, `"tool_calls"`), "error: 2 calls, of which at least one has no id"},
		{"two calls of one index without ids, by turns", "openai", chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}]}`, `"tool_calls"`), "error: 2 calls, of which at least one has no id"},
		{"a message instead of a delta", "openai", `data: {"choices":[{"index":0,"message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}},{"id":"y","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "f{} g{}"},
		{"a message after deltas", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, "null") + `data: {"choices":[{"index":0,"delta":{},"message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "f{}"},
		{"an empty object before the params", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`, `"tool_calls"`), `f{"a":1}`},
		{"the params so far in each chunk", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, `"tool_calls"`), `f{"a":1}`},
		{"null as a piece of params", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"null"}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`, `"tool_calls"`), `f{"a":null}`},
		{"params that begin as what is in them", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}}"}}]}`, `"tool_calls"`), `f{"a":{"a":1}}`},
		{"numbers as ids", "openai", chunk(`{"tool_calls":[{"index":0,"id":1,"function":{"name":"f","arguments":"{}"}},{"index":0,"id":2,"function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`), "f{} f{}"},
		{"a custom call", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","type":"custom","custom":{"name":"f","input":"a"}}]}`, `"tool_calls"`), "f!"},
		{"params as an object", "mistral", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":{"a":1}}}]}`, `"tool_calls"`), `f{"a":1}`},
		{"params cut off", "openai", chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a"}}]}`, "null") + chunk("{}", `"length"`), `f{"a!`},
		{"one choice without an end", "openai", chunk(`{}`, `"stop"`) + `data: {"choices":[{"index":1,"delta":{"content":"x"}}]}` + "\n\ndata: [DONE]\n\n", "error: the stream ended before"},
		{"an error", "openai", chunk(`{"content":"hi"}`, "null") + `data: {"error":{"message":"Overloaded"}}` + "\n\n", "error: the API returned an error: Overloaded"},
		{"only the end", "openai", "data: [DONE]\n\n", "error: the stream ended before"},
		{"no JSON", "openai", "data: hello\n\n" + usage, "error: event 1 of the stream is not valid JSON"},
		{"an event of two lines", "openai", "event: message\rid: 1\rdata: {\"choices\":[{\"index\":0,\"delta\":{},\rdata: \"finish_reason\":\"stop\"}]}\r\r", ""},

		{"incomplete", "openai-responses", `data: {"type":"response.incomplete","response":{"status":"incomplete","output":[{"type":"function_call","status":"incomplete","call_id":"x","name":"f","arguments":"{\"a"}]}}`, `f{"a!`},
		{"items that the last event leaves out", "openai-responses", item("done", "0", `{"type":"reasoning","id":"r"}`) + item("added", "1", `{"type":"function_call","id":"i","status":"in_progress","call_id":"x","name":"f","arguments":""}`) +
			item("done", "1", `{"type":"function_call","id":"i","status":"completed","call_id":"x","name":"f","arguments":"{}"}`) + completed(`[]`), "f{}"},
		{"all items left out but one", "openai-responses", item("done", "0", `{"type":"function_call","id":"i","call_id":"x","name":"f","arguments":"{}"}`) + item("done", "1", `{"type":"function_call","id":"j","call_id":"y","name":"g","arguments":"{}"}`) +
			completed(`[{"type":"function_call","id":"j","call_id":"y","name":"g","arguments":"{}"}]`), "f{} g{}"},
		{"items of other ids at the end", "openai-responses", item("done", "0", `{"type":"function_call","id":"i","call_id":"x","name":"f","arguments":"{}"}`) + completed(`[{"type":"function_call","id":"other","call_id":"z","name":"f","arguments":"{}"}]`), "f{}"},
		{"items that have only begun", "openai-responses", item("added", "0", `{"type":"function_call","id":"i","status":"in_progress","call_id":"x","name":"f","arguments":""}`) +
			`data: {"type":"response.function_call_arguments.delta","item_id":"i","delta":"{\"a\":"}` + "\n\n" + `data: {"type":"response.function_call_arguments.delta","item_id":"i","delta":"1}"}` + "\n\n" + completed(`null`), `f{"a":1}`},
		{"items that have only begun, cut off", "openai-responses", item("added", "0", `{"type":"function_call","id":"i","status":"in_progress","call_id":"x","name":"f","arguments":""}`) +
			`data: {"type":"response.function_call_arguments.delta","item_id":"i","delta":"{\"a\":"}` + "\n\n" + `data: {"type":"response.incomplete","response":{"output":[]}}`, `f{"a":!`},
		{"an empty object before the params", "openai-responses", item("added", "0", `{"type":"function_call","id":"i","call_id":"x","name":"f","arguments":"{}"}`) +
			`data: {"type":"response.function_call_arguments.delta","item_id":"i","delta":"{}"}` + "\n\n" + `data: {"type":"response.function_call_arguments.delta","item_id":"i","delta":"{\"a\":1}"}` + "\n\n" +
			`data: {"type":"response.function_call_arguments.done","item_id":"i","arguments":""}` + "\n\n" + completed(`[]`), `f{"a":1}`},
		{"another id in each event", "openai-responses", item("added", "0", `{"type":"function_call","id":"i","call_id":"x","name":"f","arguments":""}`) + item("added", "1", `{"type":"function_call","id":"j","call_id":"y","name":"g","arguments":""}`) +
			`data: {"type":"response.function_call_arguments.delta","item_id":"k","output_index":1,"delta":"{\"b\":1}"}` + "\n\n" + `data: {"type":"response.function_call_arguments.delta","item_id":"l","output_index":0,"delta":"{\"a\":1}"}` + "\n\n" + completed(`[]`), `f{"a":1} g{"b":1}`},
		{"calls of one index", "openai-responses", item("added", "0", `{"type":"function_call","id":"i","call_id":"x","name":"f","arguments":""}`) + item("added", "0", `{"type":"function_call","id":"j","call_id":"y","name":"g","arguments":""}`) +
			`data: {"type":"response.function_call_arguments.delta","item_id":"i","output_index":0,"delta":"{}"}` + "\n\n" + item("done", "0", `{"type":"function_call","id":"j","call_id":"y","name":"g","arguments":"[]"}`) + completed(`[]`), "f{} g[]"},
		{"params before their item", "openai-responses", `data: {"type":"response.function_call_arguments.delta","item_id":"i","output_index":0,"delta":"{\"a\":1}"}` + "\n\n" +
			item("added", "0", `{"type":"function_call","id":"i","call_id":"x","name":"f","arguments":""}`) + completed(`[]`), `f{"a":1}`},
		{"no response at the end", "openai-responses", item("done", "0", `{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}`) + `data: {"type":"response.completed"}`, "f{}"},
		{"failed", "openai-responses", `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Broken"},"output":[]}}`, "error: the API returned an error: Broken"},
		{"failed without a reason", "openai-responses", `data: {"type":"response.failed","response":{"status":"failed","error":null,"output":[{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}]}}`, "error: it ended with failed, so nothing was run"},
		{"an error", "openai-responses", `data: {"type":"error","code":"rate_limit_exceeded","message":"Slow down"}`, "error: the API returned an error: Slow down"},

		{"content in the first event", "anthropic", `data: {"type":"message_start","message":{"content":[{"type":"tool_use","id":"x","name":"f","input":{"a":1}}]}}` + "\n\n" +
			block("1", `{"type":"tool_use","id":"y","name":"g","input":{}}`, "") + stop, `f{"a":1} g{}`},
		{"no params", "anthropic", block("0", `{"type":"tool_use","id":"x","name":"f","input":{}}`, "") + stop, "f{}"},
		{"params cut off", "anthropic", block("0", `{"type":"tool_use","id":"x","name":"f","input":{}}`, `{\"a`) + `data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"}}` + "\n\n" + stop, `f{"a!`},
		{"an empty object before the params", "anthropic", block("0", `{"type":"tool_use","id":"x","name":"f","input":{}}`, `{}`) +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}` + "\n\n" + stop, `f{"a":1}`},
		{"what the server runs", "anthropic", block("0", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, `{}`) + stop, ""},
		{"an error", "anthropic", "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n", "error: the API returned an error: Overloaded"},
		{"a block is missing", "anthropic", block("1", `{"type":"tool_use","id":"x","name":"f","input":{}}`, "") + stop, "error: a content block of the stream is missing"},
		{"a block that is none", "anthropic", `data: {"type":"message_start","message":{"content":["x"]}}` + "\n\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}` + "\n\n" + stop, "error: a content block of the stream is missing"},
		{"odd index", "anthropic", `data: {"type":"content_block_delta","index":"a","delta":{}}` + "\n\n" + stop, "error: an index that is not a number"},

		{"blocked", "gemini", `data: {"promptFeedback":{"blockReason":"SAFETY"}}`, "error: it ended with SAFETY (the prompt was blocked), so nothing was run"},
		{"cut off", "gemini", `[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"MAX_TOKENS"}]}]`, "f{}!"},
		{"an error", "gemini", `[{"candidates":[{"content":{"parts":[{"text":"x"}]}}]},{"error":{"code":503,"message":"Overloaded"}}]`, "error: the API returned an error: Overloaded"},
		{"responses in a member", "gemini", `data: {"response":{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}}`, "error: the response is in its member response; send that"},
		{"an error first", "gemini", `[{"error":{"code":503,"message":"Overloaded"}}]`, "error: the API returned an error: Overloaded"},

		{"an exception", "bedrock", `{"messageStart":{"role":"assistant"}}` + "\n" + `{"throttlingException":{"message":"Slow down"}}`, "error: the API returned an error: throttlingException: Slow down"},
		{"a recorded exception", "bedrock", string(streamFile(t, "recorded/bedrock-exception.frames")), "error: the API returned an error: modelStreamErrorException: Model Stream Error"},
		{"no beginning of a call", "bedrock", `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"}}}}` + "\n" + `{"messageStop":{"stopReason":"tool_use"}}`, "error: the beginning of a call is missing"},
		{"cut off", "bedrock", `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"x","name":"f"}}}}` + "\n" + `{"messageStop":{"stopReason":"max_tokens"}}`, "f{}!"},
		{"params in the beginning", "bedrock", `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}}}}` + "\n" + `{"messageStop":{"stopReason":"tool_use"}}`, `f{"a":1}`},
		{"an empty object before the params", "bedrock", `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"x","name":"f"}}}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"}}}}` + "\n" +
			`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":1}"}}}}` + "\n" + `{"messageStop":{"stopReason":"tool_use"}}`, `f{"a":1}`},
		{"damaged lengths", "bedrock", frames[:3] + "\xff" + frames[4:], "error: frame 1 of the stream is damaged"},
		{"damaged text", "bedrock", strings.Replace(frames, "assistant", "assisTant", 1), "error: frame 1 of the stream is damaged: its checksum is wrong"},
		{"another format's stream", "mcp", "data: {}\n\n", "error: not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.format+" "+tt.name, func(t *testing.T) {
			turn, err := decode(t, tt.format, tt.data)
			if reason, fails := strings.CutPrefix(tt.want, "error: "); fails {
				if err == nil || !strings.Contains(err.Error(), reason) {
					t.Errorf("got %v, want an error with %q", err, reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range turn.Calls {
				call := c.Name + string(c.Params)
				if c.Fault != "" {
					call += "!"
				}
				got = append(got, call)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func joinedBy(between string, events []json.RawMessage) string {
	var all []string
	for _, event := range events {
		all = append(all, string(event))
	}
	return strings.Join(all, between)
}
