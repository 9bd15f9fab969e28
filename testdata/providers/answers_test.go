package providers_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/interactions"
)

// mistralMessage has the fields of the messages in Mistral's OpenAPI document.
type mistralMessage struct {
	Role       string `json:"role"`
	Name       string `json:"name"`
	ToolCallID string `json:"tool_call_id"`
	Content    any    `json:"content"`
}

// TestAnswers has a model call a tool with every kind of result, one that
// fails, one that is not there and one with the wrong params, and reads the
// messages that go back into the types of the provider's SDK.
func TestAnswers(t *testing.T) {
	settings := filepath.Join(shared.dir, "kinds.json")
	calls := []string{"image", "fail", "nowhere", "add"}
	list := func(call string, wrap string) string {
		var all []string
		for i, name := range calls {
			all = append(all, fmt.Sprintf(call, i, name))
		}
		return fmt.Sprintf(wrap, strings.Join(all, ","))
	}
	const inChoices = `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":"","tool_calls":[%s]}}]}`
	tests := []struct {
		format, response string
		want             []string // in the answers
		decode           func(line []byte) error
	}{
		{"openai", list(`{"id":"c%d","type":"function","function":{"name":"%s","arguments":"{}"}}`, inChoices),
			[]string{`"image_url":{"url":"data:image/png;base64,`, `"input_audio"`, `Error: it went wrong`, `Error: There is no tool`, `Error: The params do not match`},
			func(line []byte) error { return decode(line, &openai.ChatCompletionMessageParamUnion{}) }},
		{"openai-responses", list(`{"type":"function_call","call_id":"c%d","name":"%s","arguments":"{}"}`, `{"output":[%s]}`),
			[]string{`"type":"input_image"`, `Error: it went wrong`},
			func(line []byte) error { return decode(line, &responses.ResponseInputItemUnionParam{}) }},
		{"openai-responses", `[{"type":"function_call","call_id":"f","name":"f","namespace":"n","caller":{"type":"program","caller_id":"p"}},{"type":"custom_tool_call","call_id":"c","name":"g","input":"","namespace":"n","caller":{"type":"direct"}},{"type":"tool_search_call","call_id":"t","execution":"client","arguments":{}},{"type":"shell_call","call_id":"s","action":{"commands":["ls"],"max_output_length":100},"environment":{"type":"local"},"caller":null},{"type":"local_shell_call","id":"i","call_id":"l","action":{}},{"type":"apply_patch_call","call_id":"a","operation":{},"caller":{"type":"program","caller_id":"p"}},{"type":"mcp_approval_request","id":"m","name":"x","server_label":"s","arguments":"{}"}]`,
			[]string{`"namespace":"n"`, `"tool_search_output"`, `"shell_call_output"`, `"local_shell_call_output"`, `"apply_patch_call_output"`, `"approve":false`, `Error: Calls of type custom`},
			func(line []byte) error { return decode(line, &responses.ResponseInputItemUnionParam{}) }},
		{"anthropic", list(`{"type":"tool_use","id":"c%d","name":"%s","input":{}}`, `{"role":"assistant","content":[%s]}`),
			[]string{`"type":"image"`, `"is_error":true`, "There is no tool"},
			func(line []byte) error { return decode(line, &anthropic.MessageParam{}) }},
		{"bedrock", list(`{"toolUse":{"toolUseId":"c%d","name":"%s","input":{}}}`, `{"output":{"message":{"role":"assistant","content":[%s]}},"stopReason":"tool_use"}`),
			[]string{`"image":{"format":"png"`, `"status":"error"`, "There is no tool"},
			func(line []byte) error { return decodeShape(line, &types.Message{}) }},
		{"mistral", list(`{"id":"c%d","function":{"name":"%s","arguments":"{}"}}`, inChoices),
			[]string{`"type":"image_url"`, `Error: it went wrong`, `{"role":"assistant"`},
			func(line []byte) error { return decodeStrictly(line, &mistralMessage{}) }},
		{"gemini", list(`{"functionCall":{"id":"c%d","name":"%s","args":{}}}`, `{"candidates":[{"content":{"role":"model","parts":[%s]}}]}`),
			[]string{`"inlineData":{"mimeType":"image/png"`, `"error":"it went wrong"`},
			func(line []byte) error { return decodeStrictly(line, &genai.Content{}) }},
		{"gemini-interactions", list(`{"type":"function_call","id":"c%d","name":"%s","arguments":{}}`, `{"object":"interaction","status":"requires_action","steps":[%s]}`),
			[]string{`{"type":"image","mime_type":"image/png"`, `"is_error":true`, "There is no tool"},
			func(line []byte) error { return decode(line, &interactions.Step{}) }},
		{"mcp", list(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{}}}`, `[%s]`),
			[]string{`"type":"image"`, `"isError":true`, `-32602`},
			decodeMCP},
	}
	for _, tt := range tests {
		t.Run(tt.format, func(t *testing.T) {
			out := string(toolreg(t, settings, tt.response, "call", "--format", tt.format, "--yes"))
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s is not in\n%s", want, out)
				}
			}
			for line := range strings.Lines(out) {
				if err := tt.decode([]byte(line)); err != nil {
					t.Errorf("%v\n%s", err, line)
				}
			}
		})
	}
}

func decodeMCP(line []byte) error {
	var response struct {
		Result json.RawMessage
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal(line, &response); err != nil || response.Error != nil {
		return err
	}
	return json.Unmarshal(response.Result, &mcp.CallToolResult{})
}

// TestDecodersRefuse shows that the checks of these tests can fail.
func TestDecodersRefuse(t *testing.T) {
	for name, err := range map[string]error{
		"openai":    decode([]byte(`{"type":"function","function":{"name":"x","bogus":1,"parameters":{}}}`), &openai.ChatCompletionToolUnionParam{}),
		"responses": decode([]byte(`{"type":"function","name":"x","bogus":1,"parameters":{},"strict":true}`), &responses.ToolUnionParam{}),
		"anthropic": decode([]byte(`{"name":"x","bogus":1,"input_schema":{"type":"object"}}`), &anthropic.ToolUnionParam{}),
		"bedrock":   decodeShape([]byte(`{"tools":[{"toolSpec":{"name":"x","bogus":1,"inputSchema":{"json":{}}}}]}`), &types.ToolConfiguration{}),
		"block":     decodeShape([]byte(`{"role":"user","content":[{"bogus":{}}]}`), &types.Message{}),
		"gemini":    decodeStrictly([]byte(`{"functionDeclarations":[{"name":"x","parameters":{"type":"OBJECT","additionalProperties":false}}]}`), &genai.Tool{}),
		"mistral":   decodeStrictly([]byte(`{"type":"function","function":{"name":"x","bogus":1}}`), &mistralTool{}),
		"strict":    strictRules(object{"type": "object", "properties": object{"a": object{"type": "string"}}, "required": []any{}, "additionalProperties": false}),
		"open":      strictRules(object{"type": "object", "properties": object{}, "required": []any{}}),
		"root":      openAIRules(object{"type": "object", "properties": object{}, "anyOf": []any{}}),
		"list":      openAIRules(object{"type": "object", "properties": object{"a": object{"type": "array"}}}),
		"draft":     newSchema2020([]byte(`{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":true}}}`)),
		"schema":    checkGeminiSchema(&genai.Schema{Type: genai.TypeObject}),
	} {
		if err == nil {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}
