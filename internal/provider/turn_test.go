package provider

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// call is the part of a Call that tests compare.
type call struct {
	Name, Params string
	Refused      bool
}

func calls(t *Turn) []call {
	var out []call
	for _, c := range t.Calls {
		out = append(out, call{c.Name, string(c.Params), c.Fault != ""})
	}
	return out
}

func decode(t *testing.T, format, data string) (*Turn, error) {
	t.Helper()
	f, err := LookupCallFormat(format)
	if err != nil {
		t.Fatal(err)
	}
	return f.Decode([]byte(data))
}

func TestDecode(t *testing.T) {
	one := []call{{Name: "f", Params: `{"a":1}`}}
	cut := []call{{Name: "f", Params: `{"a":1}`, Refused: true}}
	elsewhere := []call{{Name: "f", Refused: true}}
	tests := []struct {
		name, format, data string
		want               []call
	}{
		{"completion", "openai", `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`, one},
		{"message", "openai", `{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, one},
		{"bare list", "openai", `[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`, one},
		{"one call, params as an object", "openai", `{"id":"x","function":{"name":"f","arguments":{"a":1}}}`, one},
		{"byte order mark", "openai", "\uFEFF" + `[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]`, one},
		{"names in camelCase", "mistral", `{"choices":[{"finishReason":"tool_calls","message":{"toolCalls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`, one},
		{"names in camelCase, of a call", "openai", `{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":{"toolCalls":1}}}]}`, []call{{Name: "f", Params: `{"toolCalls":1}`}}},
		{"names in camelCase, and the same in params", "openai", `{"role":"assistant","toolCalls":[{"id":"x","function":{"name":"f","arguments":{"toolCalls":1}}}]}`, []call{{Name: "f", Params: `{"toolCalls":1}`}}},
		{"names in camelCase, events", "mistral", `{"data":{"choices":[{"index":0,"delta":{"toolCalls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finishReason":null}]}}` + "\n" +
			`{"data":{"choices":[{"index":0,"delta":{},"finishReason":"tool_calls"}]}}`, one},
		{"calls without args", "gemini", `[{"id":"x","name":"f"},{"name":"g"}]`, []call{{Name: "f"}, {Name: "g"}}},
		{"params elsewhere", "openai", `[{"id":"x","function":{"name":"f","parameters":{"a":1}}}]`, elsewhere},
		{"params elsewhere", "openai-responses", `[{"type":"function_call","call_id":"x","name":"f","input":{"a":1}}]`, elsewhere},
		{"params elsewhere", "anthropic", `[{"type":"tool_use","id":"x","name":"f","arguments":{"a":1}}]`, elsewhere},
		{"params elsewhere", "bedrock", `[{"toolUse":{"toolUseId":"x","name":"f","arguments":{"a":1}}}]`, elsewhere},
		{"params elsewhere", "gemini", `[{"functionCall":{"name":"f","arguments":{"a":1}}}]`, elsewhere},
		{"params elsewhere", "mcp", `{"name":"f","params":{"a":1}}`, elsewhere},
		{"no calls", "openai", `{"choices":[{"message":{"role":"assistant","content":"hi"}}]}`, nil},
		{"calls are null", "openai", `{"role":"assistant","tool_calls":null}`, nil},
		{"cut off", "openai", `{"choices":[{"finish_reason":"length","message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`, cut},
		{"custom", "openai", `[{"id":"x","type":"custom","custom":{"name":"f","input":"y"}}]`, []call{{Name: "f", Refused: true}}},
		{"an unknown kind of call beside another", "openai", `{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"y","type":"juggle","juggle":{}}]}`, append(slices.Clone(one), call{Name: "juggle", Refused: true})},
		{"an unknown kind of call beside another", "mistral", `{"choices":[{"message":{"tool_calls":[{"id":"y","type":"juggle"},{"id":"x","function":{"name":"f","arguments":{"a":1}}}]}}]}`, append([]call{{Name: "juggle", Refused: true}}, one...)},
		{"a list of unknown kinds", "openai", `[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"y","type":"juggle"}]`, append(slices.Clone(one), call{Name: "juggle", Refused: true})},
		{"a list of unknown kinds", "openai", `[{"id":"y","type":"juggle","juggle":{}},{"id":"z","type":"dance"}]`, []call{{Name: "juggle", Refused: true}, {Name: "dance", Refused: true}}},
		{"a list of unknown kinds", "mistral", `[{"id":"y","type":"juggle","juggle":{}}]`, []call{{Name: "juggle", Refused: true}}},
		{"one call of an unknown kind", "mistral", `{"id":"y","type":"juggle","juggle":{}}`, []call{{Name: "juggle", Refused: true}}},
		{"params are not JSON", "openai", `[{"id":"x","function":{"name":"f","arguments":"{\"a"}}]`, []call{{Name: "f", Params: `{"a`}}},
		{"fields of other types", "openai", `[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"custom":{"name":"","input":""}}]`, one},
		{"params are null in text", "openai", `[{"id":"x","function":{"name":"f","arguments":"null"}}]`, []call{{Name: "f"}}},
		{"two choices, one calls", "openai", `{"choices":[{"message":{"content":"a"}},{"message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`, one},

		{"response", "openai-responses", `{"id":"r","error":null,"output":[{"type":"reasoning","id":"rs"},{"type":"function_call","id":"fc","call_id":"x","name":"f","arguments":"{\"a\":1}","status":"completed"}]}`, one},
		{"items", "openai-responses", `[{"type":"function_call","call_id":"x","name":"f","arguments":"{\"a\":1}"}]`, one},
		{"item", "openai-responses", `{"type":"function_call","call_id":"x","name":"f","arguments":"{\"a\":1}"}`, one},
		{"incomplete", "openai-responses", `{"output":[{"type":"function_call","status":"incomplete","call_id":"x","name":"f","arguments":"{\"a\":1}"}]}`, cut},
		{"calls of its own tools", "openai-responses", `[{"type":"tool_search_call","call_id":"t","execution":"client"},{"type":"shell_call","call_id":"s","environment":{"type":"local"}},{"type":"apply_patch_call","call_id":"a"},{"type":"local_shell_call","call_id":"l"},{"type":"juggle_call","call_id":"j"},{"type":"computer_call","call_id":"c"}]`,
			[]call{{}, {Refused: true}, {Refused: true}, {Refused: true}, {Refused: true}, {Refused: true}}},
		{"a request for approval", "openai-responses", `{"type":"mcp_approval_request","id":"m","name":"x","arguments":"{}"}`, []call{{Name: "x", Params: "{}", Refused: true}}},
		{"what the server runs", "openai-responses", `[{"type":"web_search_call","id":"w"},{"type":"tool_search_call","execution":"server","call_id":null},{"type":"tool_search_output","execution":"server","tools":[]},{"type":"shell_call","call_id":"s","environment":{"type":"container_reference"}},{"type":"apply_patch_call","call_id":"a"},{"type":"apply_patch_call_output","call_id":"a","status":"completed"},{"type":"program","call_id":"p","code":""},{"type":"mcp_call","id":"m","name":"x","arguments":"{}"}]`, nil},
		{"text", "openai-responses", `{"output":[{"type":"message","role":"assistant","content":[]}]}`, nil},

		{"message", "anthropic", `{"type":"message","role":"assistant","stop_reason":"tool_use","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"x","name":"f","input":{"a":1}}]}`, one},
		{"blocks", "anthropic", `[{"type":"thinking","thinking":""},{"type":"tool_use","id":"x","name":"f","input":{"a":1}}]`, one},
		{"block", "anthropic", `{"type":"tool_use","id":"x","name":"f","input":{"a":1}}`, one},
		{"text", "anthropic", `{"role":"assistant","content":"hi"}`, nil},
		{"no text", "anthropic", `{"role":"assistant","content":""}`, nil},
		{"a toolset of the API", "anthropic", `{"type":"tool_use","id":"x","name":"f","toolset_name":"browser","input":{"a":1}}`, cut},
		{"server's own tools", "anthropic", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"mcp_tool_use","id":"m","name":"f","input":{}}]}`, nil},
		{"full context", "anthropic", `{"role":"assistant","stop_reason":"model_context_window_exceeded","content":[{"type":"tool_use","id":"x","name":"f","input":{"a":1}}]}`, cut},
		{"cut off", "anthropic", `{"role":"assistant","stop_reason":"max_tokens","content":[{"type":"tool_use","id":"x","name":"f","input":{"a":1}}]}`, cut},
		{"cut off after the call", "anthropic", `{"role":"assistant","stop_reason":"max_tokens","content":[{"type":"tool_use","id":"x","name":"f","input":{"a":1}},{"type":"text","text":"and"}]}`, one},

		{"response", "bedrock", `{"output":{"message":{"role":"assistant","content":[{"text":"x"},{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}}]}},"stopReason":"tool_use","usage":{}}`, one},
		{"message", "bedrock", `{"role":"assistant","content":[{"reasoningContent":{}},{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}}]}`, one},
		{"blocks", "bedrock", `[{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}}]`, one},
		{"block", "bedrock", `{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}}`, one},
		{"text", "bedrock", `{"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"stopReason":"end_turn"}`, nil},
		{"server's own tools", "bedrock", `{"role":"assistant","content":[{"toolUse":{"toolUseId":"s","name":"w","input":{},"type":"server_tool_use"}},{"toolResult":{"toolUseId":"s","content":[]}}]}`, nil},
		{"a later type", "bedrock", `{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1},"type":"juggle"}}`, cut},
		{"cut off", "bedrock", `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}}]}},"stopReason":"max_tokens"}`, cut},
		{"cut off after the call", "bedrock", `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}},{"text":"and"}]}},"stopReason":"max_tokens"}`, one},

		{"completion", "mistral", `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"index":0}]}}]}`, one},
		{"params as an object", "mistral", `[{"id":"x","function":{"name":"f","arguments":{"a":1}}}]`, one},
		{"chunks of text", "mistral", `{"choices":[{"message":{"role":"assistant","content":[{"type":"thinking","thinking":[]},{"type":"text","text":"hi"}],"tool_calls":null}}]}`, nil},
		{"cut off by the model's own limit", "mistral", `{"choices":[{"finish_reason":"model_length","message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`, cut},

		{"response", "gemini", `{"candidates":[{"content":{"role":"model","parts":[{"text":"x"},{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"s"}]}}]}`, one},
		{"content", "gemini", `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}}]}`, one},
		{"snake case", "gemini", `{"role":"model","parts":[{"function_call":{"name":"f","args":{"a":1}}}]}`, one},
		{"chunks", "gemini", `[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}}]}}]},{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}]`, one},
		{"parts", "gemini", `[{"text":"x"},{"functionCall":{"name":"f","args":{"a":1}}}]`, one},
		{"calls", "gemini", `[{"name":"f","args":{"a":1}}]`, one},
		{"no args", "gemini", `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`, []call{{Name: "f"}}},
		{"server's own tools", "gemini", `{"role":"model","parts":[{"toolCall":{"id":"s","toolType":"GOOGLE_SEARCH_WEB","args":{"q":"x"}}},{"toolResponse":{"id":"s"}},{"executableCode":{"code":"1"}}]}`, nil},
		{"live", "gemini", `{"toolCall":{"functionCalls":[{"id":"1","name":"f","args":{"a":1}}]},"usageMetadata":{}}`, one},
		{"live text", "gemini", `{"serverContent":{"modelTurn":{"parts":[{"text":"x"}]}}}`, nil},
		{"live cancellation", "gemini", `{"toolCallCancellation":{"ids":["1"]}}`, nil},
		{"empty", "gemini", `{"candidates":[{"finishReason":"STOP"}]}`, nil},
		{"interaction", "gemini-interactions", `{"id":"v","object":"interaction","status":"requires_action","steps":[{"type":"thought","signature":"s"},{"type":"function_call","id":"x","name":"f","arguments":{"a":1}}]}`, one},
		{"steps", "gemini-interactions", `[{"type":"model_output","content":[{"type":"text","text":"hi"}]},{"type":"function_call","id":"x","name":"f","arguments":{"a":1}}]`, one},
		{"a step", "gemini-interactions", `{"type":"function_call","id":"x","name":"f","arguments":{"a":1}}`, one},
		{"no calls", "gemini-interactions", `{"object":"interaction","status":"completed","steps":[{"type":"model_output","content":[]}]}`, nil},
		{"no steps", "gemini-interactions", `{"object":"interaction","status":"completed"}`, nil},
		{"what the server runs", "gemini-interactions", `[{"type":"google_search_call","id":"s","arguments":{"queries":["q"]}},{"type":"google_search_result","call_id":"s"},{"type":"mcp_server_tool_call","id":"m","name":"t","server_name":"n","arguments":{}},{"type":"code_execution_call","id":"c"},{"type":"dance_call","id":"d"}]`, nil},
		{"answered by the server", "gemini-interactions", `{"status":"completed","steps":[{"type":"user_input","content":[]},{"type":"function_call","id":"x","name":"f","arguments":{}},{"type":"function_result","call_id":"x","result":"r"}]}`, nil},
		{"an unknown kind of call", "gemini-interactions", `[{"type":"juggle_call","id":"x","name":"f","arguments":{"a":1}}]`, cut},
		{"cut off", "gemini-interactions", `{"status":"incomplete","steps":[{"type":"function_call","id":"x","name":"f","arguments":{"a":1}}]}`, cut},

		{"request", "mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"f","arguments":{"a":1}}}`, one},
		{"params", "mcp", `{"name":"f","arguments":{"a":1}}`, one},
		{"params without arguments", "mcp", `{"name":"f"}`, []call{{Name: "f"}}},
		{"list", "mcp", `[{"name":"f","arguments":{"a":1}}]`, one},
	}
	for _, tt := range tests {
		t.Run(tt.format+" "+tt.name, func(t *testing.T) {
			turn, err := decode(t, tt.format, tt.data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, calls(turn)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeUnreadable(t *testing.T) {
	tests := []struct{ name, format, data, want string }{
		{"empty", "openai", " \n", "is empty"},
		{"no JSON", "openai", "hello", "not valid JSON"},
		{"duplicate key", "anthropic", `{"type":"tool_use","id":"x","name":"a","name":"b","input":{}}`, "duplicate"},
		{"chunk", "openai", `{"choices":[{"delta":{"tool_calls":[]}}]}`, "before the response was finished"},
		{"completion", "openai", `{"choices":[{"text":"x","finish_reason":"stop"}]}`, "has no message"},
		{"events of another format", "openai", `[{"type":"message_start"},{"type":"message_stop"}]`, "before the response was finished"},
		{"names in camelCase", "mistral", `{"choices":[{"finishReason":"length","message":{"role":"assistant","content":"x"}}]}`, "limit on tokens"},
		{"error of the API", "anthropic", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "the API returned an error: Overloaded"},
		{"another format", "openai", `{"role":"user","parts":[]}`, "choices, a message with tool_calls"},
		{"looks like another", "openai", `[{"type":"tool_use","id":"x","name":"f","input":{}}]`, "looks like format anthropic"},
		{"message in this format, calls in another", "openai", `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}`, "looks like format anthropic"},
		{"number", "gemini", `5`, "candidates"},
		{"history", "openai", `[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[]}]`, "list of messages"},
		{"history", "anthropic", `[{"role":"user","content":"x"}]`, "list of messages"},
		{"history", "gemini", `[{"role":"user","parts":[]}]`, "list of contents"},
		{"answered", "openai-responses", `[{"type":"function_call","call_id":"x","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"x","output":""}]`, "answers to calls"},
		{"args in pieces", "gemini", `{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}}]}`, "in pieces"},
		{"not a list", "gemini", `{"toolCall":{"functionCalls":{}}}`, "functionCalls is not a list"},
		{"odd id", "mcp", `{"id":[1],"method":"tools/call","params":{"name":"f"}}`, "no id"},
		{"not a list", "openai", `{"choices":5}`, "choices is not a list"},
		{"not a list", "gemini", `{"candidates":null}`, "candidates is not a list"},
		{"not a list", "anthropic", `{"role":"assistant","content":null}`, "content must be a list or a string"},
		{"answered", "bedrock", `{"role":"user","content":[{"toolResult":{"toolUseId":"x","content":[]}}]}`, "user message"},
		{"history", "bedrock", `[{"role":"user","content":[{"text":"x"}]}]`, "list of messages"},
		{"error of the API", "bedrock", `{"message":"Too many requests, please wait before trying again."}`, "the API returned an error: Too many"},
		{"another's blocks", "bedrock", `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}`, "looks like format anthropic"},
		{"another's blocks", "anthropic", `{"role":"assistant","content":[{"toolUse":{"toolUseId":"x","name":"f","input":{}}}]}`, "looks like format bedrock"},
		{"another's output", "openai-responses", `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"x","name":"f","input":{}}}]}}}`, "looks like format bedrock"},
		{"nothing of it", "bedrock", `{"output":{"text":"x"}}`, "output with a message"},
		{"another's text", "bedrock", `{"role":"assistant","content":"hi"}`, "output with a message"},
		{"error of the API", "mistral", `{"object":"error","message":"Unauthorized","type":"invalid_request_error","code":"1000"}`, "the API returned an error: Unauthorized"},
		{"error of a server", "openai", `{"object":"error","message":"No such model","type":"NotFoundError","code":404}`, "the API returned an error: No such model"},
		{"error of the API", "mistral", `{"detail":[{"loc":["body","model"],"msg":"Field required"}]}`, "Field required"},
		{"another format", "mistral", `[{"type":"tool_use","id":"x","name":"f","input":{}}]`, "looks like format anthropic"},
		{"not a list", "openai-responses", `{"output":{}}`, "output is not a list"},
		{"two choices", "openai", `{"choices":[{"message":{"tool_calls":[{"id":"x","function":{"name":"f"}}]}},{"message":{"tool_calls":[{"id":"y","function":{"name":"f"}}]}}]}`, "2 of its choices"},
		{"old form", "openai", `{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`, "function_call"},
		{"not a list", "gemini-interactions", `{"steps":5}`, "steps is not a list"},
		{"a step that failed", "gemini-interactions", `{"status":"failed","steps":[{"type":"model_output","error":{"code":3,"message":"blocked"}}]}`, "blocked"},
		{"failed", "gemini-interactions", `{"status":"failed","errors":[{"code":"x","message":"no quota"}],"steps":[]}`, "failed (no quota)"},
		{"error of the API", "gemini-interactions", `{"error":{"code":"not_found","message":"no such model"}}`, "no such model"},
		{"another format", "gemini-interactions", `[{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}]`, "looks like format openai-responses"},
		{"another format", "openai-responses", `[{"type":"function_call","id":"x","name":"f","arguments":{"a":1}}]`, "looks like format gemini-interactions"},
		{"another format", "openai-responses", `{"object":"interaction","status":"requires_action","steps":[{"type":"function_call","id":"x","name":"f","arguments":{}}]}`, "looks like format gemini-interactions"},
		{"nothing of it", "gemini-interactions", `{"id":"x"}`, "an interaction with steps"},
		{"blocked", "gemini", `{"promptFeedback":{"blockReason":"SAFETY"}}`, "SAFETY"},
		{"notification", "mcp", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"f"}}`, "no id"},
		{"another method", "mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "not for tools/call"},
		{"too many calls", "mcp", "[" + strings.TrimSuffix(strings.Repeat(`{"name":"f"},`, maxCalls+1), ",") + "]", "1001 calls"},
	}
	for _, tt := range tests {
		t.Run(tt.format+" "+tt.name, func(t *testing.T) {
			_, err := decode(t, tt.format, tt.data)
			var unreadable *UnreadableError
			if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an UnreadableError with %q", err, tt.want)
			}
		})
	}
}

func TestUnknownCallFormat(t *testing.T) {
	if _, err := LookupCallFormat("opnai"); err == nil || !strings.Contains(err.Error(), "openai-responses") {
		t.Errorf("got %v, want the known formats", err)
	}
}

// TestReply decodes calls and compares the messages that answer them.
func TestReply(t *testing.T) {
	png := registry.Content{Type: registry.ContentImage, MIMEType: "image/png", Data: []byte("P")}
	pdf := registry.Content{Type: registry.ContentResource, MIMEType: "application/pdf", URI: "file:///d/a.pdf", Data: []byte("D")}
	svg := registry.Content{Type: registry.ContentImage, MIMEType: "image/svg+xml", Data: []byte("S")}
	wav := registry.Content{Type: registry.ContentAudio, MIMEType: "audio/wav", Data: []byte("W")}
	link := registry.Content{Type: registry.ContentResourceLink, URI: "file:///x", Name: "x"}
	rich := Answer{Content: []registry.Content{registry.TextContent("see"), png, pdf, svg, wav, link}}
	failed := Answer{Content: []registry.Content{registry.TextContent("no"), png}, IsError: true}
	large := registry.Content{Type: registry.ContentImage, MIMEType: "image/png", Data: append([]byte("\x89PNG"), make([]byte, 5<<20)...)}
	long := registry.Content{Type: registry.ContentImage, MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x05\xa0\x00\x00\x21\x7a\x08\x06\x00\x00\x00\x20\xf7\xc6\x0e")}
	webp := registry.Content{Type: registry.ContentImage, MIMEType: "image/webp", Data: []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\n\x00\x00\x00\x00\x00\x00\x00\x40\x1f\x00\x00\x00\x00")}
	report := registry.Content{Type: registry.ContentResource, MIMEType: "application/pdf", URI: "x:r", Data: append([]byte("%PDF-"), make([]byte, 5<<20)...)}
	const twoOpenAI = `[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"g"}}]`
	const twoGemini = `[{"name":"f","args":{},"id":"1"},{"name":"g","args":{}}]`
	tests := []struct {
		name, format, data string
		answers            []Answer
		want               string
	}{
		{"text", "openai", twoOpenAI, []Answer{{Content: []registry.Content{registry.TextContent("x")}}, ErrorAnswer("no")},
			`{"role":"tool","tool_call_id":"a","content":"x"}
{"role":"tool","tool_call_id":"b","content":"Error: no"}`},
		{"media", "openai", twoOpenAI, []Answer{rich, {}},
			`{"role":"tool","tool_call_id":"a","content":"see\n[image, image/png, 1 bytes] in the message below\n[resource file:///d/a.pdf, application/pdf, 1 bytes] in the message below\n[image, image/svg+xml, 1 bytes] cannot be shown\n[audio, audio/wav, 1 bytes] in the message below\n[resource file:///x, x]"}
{"role":"tool","tool_call_id":"b","content":"(no output)"}
{"role":"user","content":[{"type":"text","text":"From the call a of f:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,UA=="}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,RA=="}},{"type":"input_audio","input_audio":{"data":"Vw==","format":"wav"}}]}`},
		{"names in camelCase", "openai", `{"role":"assistant","toolCalls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`, []Answer{{Content: []registry.Content{registry.TextContent(`{"image_url":1}`), png, pdf, wav}}},
			`{"role":"tool","toolCallId":"a","content":"{\"image_url\":1}\n[image, image/png, 1 bytes] in the message below\n[resource file:///d/a.pdf, application/pdf, 1 bytes] in the message below\n[audio, audio/wav, 1 bytes] in the message below"}
{"role":"user","content":[{"type":"text","text":"From the call a of f:"},{"type":"image_url","imageUrl":{"url":"data:image/png;base64,UA=="}},{"type":"file","file":{"filename":"a.pdf","fileData":"data:application/pdf;base64,RA=="}},{"type":"input_audio","inputAudio":{"data":"Vw==","format":"wav"}}]}`},
		{"names in camelCase", "openai-responses", `{"output":[{"type":"function_call","callId":"a","name":"f","arguments":"{}"}]}`, []Answer{{Content: []registry.Content{png}}},
			`{"type":"function_call_output","callId":"a","output":[{"type":"input_image","imageUrl":"data:image/png;base64,UA=="}]}`},
		{"names in camelCase", "mistral", `{"role":"assistant","toolCalls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`, []Answer{{Content: []registry.Content{pdf}}},
			`{"role":"tool","name":"f","toolCallId":"a","content":"[resource file:///d/a.pdf, application/pdf, 1 bytes] in the message below"}
{"role":"assistant","content":"Show me the result of the tool."}
{"role":"user","content":[{"type":"text","text":"From the call a of f:"},{"type":"document_url","documentUrl":"data:application/pdf;base64,RA==","documentName":"a.pdf"}]}`},
		{"too few answers", "openai", twoOpenAI, nil,
			`{"role":"tool","tool_call_id":"a","content":"Error: the call was not run"}
{"role":"tool","tool_call_id":"b","content":"Error: the call was not run"}`},
		{"media", "openai-responses", `[{"type":"function_call","call_id":"a","name":"f"},{"type":"custom_tool_call","call_id":"b","name":"g"}]`,
			[]Answer{{Content: []registry.Content{registry.TextContent("see"), png, registry.TextContent(" "), pdf, registry.TextContent("end")}}, ErrorAnswer("no")},
			`{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,UA=="},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,RA=="},{"type":"input_text","text":"end"}]}
{"type":"custom_tool_call_output","call_id":"b","output":"Error: no"}`},
		{"every kind of call", "openai-responses", `[{"type":"function_call","call_id":"f","name":"f","namespace":"n","caller":{"type":"program","caller_id":"p"}},{"type":"custom_tool_call","call_id":"c","name":"g","input":"","namespace":"n","caller":{"type":"direct"}},{"type":"tool_search_call","call_id":"t","execution":"client","arguments":{}},{"type":"shell_call","call_id":"s","action":{"commands":["ls"],"max_output_length":100},"environment":{"type":"local"},"caller":null},{"type":"local_shell_call","id":"i","call_id":"l","action":{}},{"type":"apply_patch_call","call_id":"a","operation":{},"caller":{"type":"program","caller_id":"p"}},{"type":"mcp_approval_request","id":"m","name":"x","server_label":"s","arguments":"{}"},{"type":"juggle_call","call_id":"j"}]`,
			[]Answer{{}, ErrorAnswer("no"), ErrorAnswer("no"), ErrorAnswer("no"), ErrorAnswer("no"), ErrorAnswer("no"), ErrorAnswer("no"), ErrorAnswer("no")},
			`{"type":"function_call_output","call_id":"f","output":"(no output)","caller":{"type":"program","caller_id":"p"},"namespace":"n"}
{"type":"custom_tool_call_output","call_id":"c","output":"Error: no","caller":{"type":"direct"}}
{"type":"tool_search_output","call_id":"t","execution":"client","status":"completed","tools":[]}
{"type":"shell_call_output","call_id":"s","output":[{"stdout":"","stderr":"no","outcome":{"type":"exit","exit_code":1}}],"max_output_length":100}
{"type":"local_shell_call_output","id":"l","output":"no"}
{"type":"apply_patch_call_output","call_id":"a","status":"failed","output":"no","caller":{"type":"program","caller_id":"p"}}
{"type":"mcp_approval_response","approval_request_id":"m","approve":false,"reason":"no"}
{"type":"juggle_call_output","call_id":"j","output":"Error: no"}`},
		{"structured result of a declared schema", "openai-responses", `[{"type":"function_call","call_id":"a","name":"f"},{"type":"function_call","call_id":"b","name":"g"}]`,
			[]Answer{{Content: []registry.Content{registry.TextContent("one")}, Structured: json.RawMessage(`{"n":1}`), Typed: true}, {Content: []registry.Content{registry.TextContent("no")}, Structured: json.RawMessage(`{"n":1}`), IsError: true, Typed: true}},
			`{"type":"function_call_output","call_id":"a","output":"{\"n\":1}"}
{"type":"function_call_output","call_id":"b","output":"Error: no"}`},
		{"structured result of a declared schema", "gemini", `{"name":"f","args":{}}`, []Answer{{Content: []registry.Content{registry.TextContent("one")}, Structured: json.RawMessage(`{"n":1}`), Typed: true}},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":{"n":1}}}}]}`},
		{"references in a structured result", "gemini", `{"name":"f","args":{}}`, []Answer{{Content: []registry.Content{registry.TextContent("one")}, Structured: json.RawMessage(`{"$ref":"#"}`), Typed: true}},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"{\"$ref\":\"#\"}"}}}]}`},
		{"a NUL", "openai", `[{"id":"a","function":{"name":"f","arguments":"{}"}}]`, []Answer{{Content: []registry.Content{registry.TextContent("a\x00b")}}},
			`{"role":"tool","tool_call_id":"a","content":"a�b"}`},
		{"media and an error", "gemini-interactions", `[{"type":"function_call","id":"a","name":"f","arguments":{}},{"type":"function_call","id":"b","name":"g","arguments":{}},{"type":"function_call","id":"c","name":"h","arguments":{}}]`, []Answer{rich, ErrorAnswer("no"), {Content: []registry.Content{png}}},
			`{"type":"function_result","call_id":"a","name":"f","result":[{"type":"text","text":"see"},{"type":"image","mime_type":"image/png","data":"UA=="},{"type":"document","mime_type":"application/pdf","data":"RA=="},{"type":"text","text":"[image, image/svg+xml, 1 bytes] cannot be shown"},{"type":"text","text":"[audio, audio/wav, 1 bytes] cannot be shown"},{"type":"text","text":"[resource file:///x, x]"}]}
{"type":"function_result","call_id":"b","name":"g","is_error":true,"result":"no"}
{"type":"function_result","call_id":"c","name":"h","result":[{"type":"image","mime_type":"image/png","data":"UA=="}]}`},
		{"live", "gemini", `{"toolCall":{"functionCalls":[{"id":"1","name":"f","args":{}},{"id":"2","name":"g","args":{}}]}}`, []Answer{{Content: []registry.Content{registry.TextContent("one")}}, ErrorAnswer("no")},
			`{"toolResponse":{"functionResponses":[{"id":"1","name":"f","response":{"output":"one"}},{"id":"2","name":"g","response":{"error":"no"}}]}}`},
		{"a toolset", "anthropic", `{"type":"tool_use","id":"a","name":"click","toolset_name":"browser"}`, []Answer{ErrorAnswer("no")},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","toolset_name":"browser","content":[{"type":"text","text":"no"}],"is_error":true}]}`},
		{"media and an error", "anthropic", `[{"type":"tool_use","id":"a","name":"f"},{"type":"tool_use","id":"b","name":"g"}]`, []Answer{rich, failed},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"UA=="}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"RA=="}},{"type":"text","text":"[image, image/svg+xml, 1 bytes] cannot be shown"},{"type":"text","text":"[audio, audio/wav, 1 bytes] cannot be shown"},{"type":"text","text":"[resource file:///x, x]"}]},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"no"},{"type":"text","text":"[image, image/png, 1 bytes] cannot be shown"}],"is_error":true}]}`},
		{"media and an error", "bedrock", `[{"toolUse":{"toolUseId":"tooluse_a","name":"f"}},{"toolUse":{"toolUseId":"b","name":"g"}}]`, []Answer{rich, failed},
			`{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_a","content":[{"text":"see"},{"image":{"format":"png","source":{"bytes":"UA=="}}},{"text":"[resource file:///d/a.pdf, application/pdf, 1 bytes]"},{"document":{"format":"pdf","name":"tooluse-a 3","source":{"bytes":"RA=="}}},{"text":"[image, image/svg+xml, 1 bytes] cannot be shown"},{"text":"[audio, audio/wav, 1 bytes] cannot be shown"},{"text":"[resource file:///x, x]"}]}},{"toolResult":{"toolUseId":"b","content":[{"text":"no"},{"text":"[image, image/png, 1 bytes] cannot be shown"}],"status":"error"}}]}`},
		{"blank text", "bedrock", `{"toolUse":{"toolUseId":"a","name":"f"}}`, []Answer{{Content: []registry.Content{registry.TextContent(" \n")}}},
			`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"(no output)"}]}}]}`},
		{"text", "mistral", twoOpenAI, []Answer{{Content: []registry.Content{registry.TextContent("x")}}, ErrorAnswer("no")},
			`{"role":"tool","name":"f","tool_call_id":"a","content":"x"}
{"role":"tool","name":"g","tool_call_id":"b","content":"Error: no"}`},
		{"media, not directly after a tool's message", "mistral", twoOpenAI, []Answer{rich, {}},
			`{"role":"tool","name":"f","tool_call_id":"a","content":"see\n[image, image/png, 1 bytes] in the message below\n[resource file:///d/a.pdf, application/pdf, 1 bytes] in the message below\n[image, image/svg+xml, 1 bytes] cannot be shown\n[audio, audio/wav, 1 bytes] cannot be shown\n[resource file:///x, x]"}
{"role":"tool","name":"g","tool_call_id":"b","content":"(no output)"}
{"role":"assistant","content":"Show me the result of the tool."}
{"role":"user","content":[{"type":"text","text":"From the call a of f:"},{"type":"image_url","image_url":"data:image/png;base64,UA=="},{"type":"document_url","document_url":"data:application/pdf;base64,RA==","document_name":"a.pdf"}]}`},
		{"media beyond the limits", "anthropic", `[{"type":"tool_use","id":"a","name":"f"}]`, []Answer{{Content: []registry.Content{large, long, webp}}},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"[image, image/png, 5242884 bytes] cannot be shown: the model takes at most 3932160 bytes; get a smaller one"},{"type":"text","text":"[image, image/png, 33 bytes] cannot be shown: it has 1440 by 8570 pixels, and the model takes at most 8000 by 8000; get a smaller one, or a part of it"},{"type":"text","text":"[image, image/webp, 30 bytes] cannot be shown: it has 8001 by 1 pixels, and the model takes at most 8000 by 8000; get a smaller one, or a part of it"}]}]}`},
		{"media beyond the limits", "bedrock", `{"toolUse":{"toolUseId":"a","name":"f"}}`, []Answer{{Content: []registry.Content{large, report}}},
			`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"[image, image/png, 5242884 bytes] cannot be shown: the model takes at most 3750000 bytes; get a smaller one"},{"text":"[resource x:r, application/pdf, 5242885 bytes] cannot be shown: the model takes at most 4500000 bytes; get a smaller one"}]}}]}`},
		{"media beyond the limits", "mistral", `[{"id":"a","function":{"name":"f"}}]`, []Answer{{Content: []registry.Content{long}}},
			`{"role":"tool","name":"f","tool_call_id":"a","content":"[image, image/png, 33 bytes] cannot be shown: it has 1440 by 8570 pixels, and the model takes at most 8000 by 8000; get a smaller one, or a part of it"}`},
		{"media within the limits", "openai", `[{"id":"a","function":{"name":"f"}}]`, []Answer{{Content: []registry.Content{webp}}},
			`{"role":"tool","tool_call_id":"a","content":"[image, image/webp, 30 bytes] in the message below"}
{"role":"user","content":[{"type":"text","text":"From the call a of f:"},{"type":"image_url","image_url":{"url":"data:image/webp;base64,UklGRh4AAABXRUJQVlA4WAoAAAAAAAAAQB8AAAAA"}}]}`},
		{"blank text beside structured content", "openai", `[{"id":"a","function":{"name":"f"}}]`, []Answer{{Content: []registry.Content{registry.TextContent(" \n")}, Structured: json.RawMessage(`{"n":1}`)}},
			`{"role":"tool","tool_call_id":"a","content":"{\"n\":1}"}`},
		{"blank text", "anthropic", `[{"type":"tool_use","id":"a","name":"f"}]`, []Answer{{Content: []registry.Content{registry.TextContent(" \n")}}},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"(no output)"}]}]}`},
		{"structured result alone", "gemini", twoGemini, []Answer{{Structured: json.RawMessage(`{"n":1}`)}, ErrorAnswer("no")},
			`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"{\"n\":1}"}}},{"functionResponse":{"name":"g","response":{"error":"no"}}}]}`},
		{"media inside", "gemini", `{"name":"f","args":{}}`, []Answer{{Content: []registry.Content{png}}},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"[image, image/png, 1 bytes]"},"parts":[{"inlineData":{"mimeType":"image/png","data":"UA=="}}]}}]}`},
		{"media of other types", "gemini", `{"name":"f","args":{}}`, []Answer{{Content: []registry.Content{svg, wav, pdf}}},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"[image, image/svg+xml, 1 bytes] cannot be shown\n[audio, audio/wav, 1 bytes] cannot be shown\n[resource file:///d/a.pdf, application/pdf, 1 bytes]"},"parts":[{"inlineData":{"mimeType":"application/pdf","data":"RA=="}}]}}]}`},
		{"sound beside, older models", "gemini", `{"modelVersion":"gemini-2.5-pro","candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`, []Answer{{Content: []registry.Content{wav, svg}}},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"[audio, audio/wav, 1 bytes]\n[image, image/svg+xml, 1 bytes] cannot be shown"}}},{"inlineData":{"mimeType":"audio/wav","data":"Vw=="}}]}`},
		{"media beside, older models", "gemini", `{"modelVersion":"gemini-2.5-pro","candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`, []Answer{{Content: []registry.Content{png}}},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"[image, image/png, 1 bytes]"}}},{"inlineData":{"mimeType":"image/png","data":"UA=="}}]}`},
		{"requests", "mcp", `[{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"f"}},{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"g"}},{"name":"h"}]`,
			[]Answer{{Content: []registry.Content{png}, Structured: json.RawMessage(`{"n":1}`)}, {Content: []registry.Content{registry.TextContent("no such tool")}, IsError: true, Unknown: true}, {}},
			`{"jsonrpc":"2.0","id":"q","result":{"content":[{"type":"image","data":"UA==","mimeType":"image/png"}],"structuredContent":{"n":1}}}
{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"no such tool"}}
{"content":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.format+" "+tt.name, func(t *testing.T) {
			turn, err := decode(t, tt.format, tt.data)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range turn.Reply(tt.answers) {
				line, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(line))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzDecode checks that any response is either an error or a turn whose calls are
// all answered.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]}}]}`,
		`{"output":[{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}`,
		`{"output":{"message":{"content":[{"toolUse":{"toolUseId":"x","name":"f","input":{}}}]}},"stopReason":"max_tokens"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"f","arguments":{}}}`,
		`[{"type":"tool_search_call","call_id":"t","execution":"client"},{"type":"mcp_approval_request","id":"m"},{"type":"shell_call","call_id":"s"}]`,
		`[{"type":"computer_call","call_id":"c","pending_safety_checks":[]}]`, `{"toolCall":{"functionCalls":[{"name":"f"}]}}`,
		`[null,5,{}]`, `{"choices":null}`, `{"role":"assistant","tool_calls":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	for _, s := range streams {
		f.Add(streamFile(f, s.file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range CallFormats() {
			turn, err := format.Decode(data)
			if err != nil {
				continue
			}
			messages := turn.Reply(nil)
			if (len(turn.Calls) == 0) != (len(messages) == 0) {
				t.Fatalf("%s: %d calls, %d messages", format.Name, len(turn.Calls), len(messages))
			}
			out, err := json.Marshal(messages)
			if err != nil {
				t.Fatalf("%s: %v", format.Name, err)
			}
			// The answer to a search has no text, but an empty list of tools; the answer
			// to a computer call is an image.
			if n := strings.Count(string(out), "the call was not run") + strings.Count(string(out), `"tools":[]`) + strings.Count(string(out), `"computer_screenshot"`); n != len(turn.Calls) {
				t.Fatalf("%s: %d answers for %d calls: %s", format.Name, n, len(turn.Calls), out)
			}
		}
	})
}

// TestComputerCall checks that the answer is an image.
func TestComputerCall(t *testing.T) {
	turn, err := decode(t, "openai-responses", `{"type":"computer_call","call_id":"c","pending_safety_checks":[{"id":"s","code":"malicious_instructions","message":"x"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(turn.Reply(nil)[0])
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Type         string
		CallID       string `json:"call_id"`
		Acknowledged []any  `json:"acknowledged_safety_checks"`
		Output       struct {
			Type     string
			ImageURL string `json:"image_url"`
		}
	}
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	encoded, ok := strings.CutPrefix(got.Output.ImageURL, "data:image/png;base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		t.Fatalf("the picture is %.40s: %v", got.Output.ImageURL, err)
	}
	if picture, err := png.Decode(bytes.NewReader(data)); err != nil || picture.Bounds().Dx() < 500 {
		t.Errorf("the picture: %v", err)
	}
	if got.Type != "computer_call_output" || got.CallID != "c" || got.Output.Type != "computer_screenshot" || got.Acknowledged != nil {
		t.Errorf("%+v", got)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	f, err := LookupCallFormat("openai")
	if err != nil {
		b.Fatal(err)
	}
	data := []byte(`{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`)
	answers := []Answer{{Content: []registry.Content{registry.TextContent("hello")}}}
	b.ReportAllocs()
	for b.Loop() {
		turn, err := f.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		if len(turn.Reply(answers)) != 1 {
			b.Fatal("no answer")
		}
	}
}
