package providers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/interactions"
)

// TestStreams has the calls of a stream answered as those of the response that the
// provider's SDK makes of it.
func TestStreams(t *testing.T) {
	tests := []struct {
		file, format string
		join         func(stream []byte) (response any, err error)
	}{
		{"openai.sse", "openai", joinOpenAI},
		{"mistral.sse", "mistral", joinOpenAI}, // which has no SDK in Go
		{"openai-responses.sse", "openai-responses", joinResponses},
		{"anthropic.sse", "anthropic", joinAnthropic},
		{"gemini.sse", "gemini", joinGemini},
		{"gemini.json", "gemini", joinGeminiArray},
		{"gemini-interactions.sse", "gemini-interactions", joinInteractions},
		{"bedrock.jsonl", "bedrock", nil},
		{"bedrock.frames", "bedrock", joinFrames},
		{"recorded/openai.sse", "openai", joinOpenAI},
		{"recorded/mistral.sse", "mistral", joinOpenAI},
		{"recorded/openai-responses.sse", "openai-responses", joinResponses},
		{"recorded/anthropic.sse", "anthropic", joinAnthropic},
		{"recorded/gemini.sse", "gemini", joinGemini},
		{"recorded/bedrock.frames", "bedrock", joinFrames},
	}
	reflecting := reflectingTools(t, "add", "multiply", "weather", "get_capital")
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join("streams", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			settings, texts := filepath.Join(shared.dir, "kinds.json"), []string{"5", "héllo"} // 2+3, and the text of echo
			if strings.HasPrefix(tt.file, "recorded/") {
				settings, texts = reflecting, []string{`\":`}
			}
			got := string(toolreg(t, settings, string(stream), "call", "--format", tt.format, "--yes"))
			for _, text := range texts {
				if !strings.Contains(got, text) {
					t.Errorf("no %q in %s", text, got)
				}
			}
			if tt.join == nil {
				return
			}
			response, err := tt.join(stream)
			if err != nil {
				t.Fatal(err)
			}
			data, ok := response.([]byte)
			if !ok {
				if data, err = json.Marshal(response); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(toolreg(t, settings, string(data), "call", "--format", tt.format, "--yes")); got != want {
				t.Errorf("the answers to the stream are\n%s\nthose to the response of the SDK\n%s", got, want)
			}
		})
	}
}

// reflectingTools returns settings with tools that give the members of their params back, without
// the spaces and in another order than a stream has them, since the SDKs keep neither.
func reflectingTools(t *testing.T, names ...string) string {
	t.Helper()
	var tools []map[string]string
	for _, name := range names {
		tools = append(tools, map[string]string{"name": name})
	}
	list, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(t.TempDir(), "tools.yaml")
	if err := os.WriteFile(settings, fmt.Appendf(nil, `tools: {discoveryCommand: [echo, '%s'], callCommand: [sh, -c, "tr -d ' ' | tr '{,}' '\\n' | sort | tr -d '\\n'"]}`, list), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings
}

// events returns the data of server-sent events as OpenAI's SDK reads them.
func events(stream []byte) ([][]byte, error) {
	d := ssestream.NewDecoder(&http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: readCloser{bytes.NewReader(stream)}})
	var out [][]byte
	for d.Next() {
		if data := bytes.TrimSpace(d.Event().Data); len(data) > 0 && string(data) != "[DONE]" {
			out = append(out, slices.Clone(data))
		}
	}
	return out, d.Err()
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func joinOpenAI(stream []byte) (any, error) {
	all, err := events(stream)
	var joined openai.ChatCompletionAccumulator
	for _, data := range all {
		var chunk openai.ChatCompletionChunk
		if err := json.Unmarshal(data, &chunk); err != nil {
			return nil, err
		}
		if !joined.AddChunk(chunk) {
			return nil, fmt.Errorf("the SDK does not take %s", data)
		}
	}
	return joined.ChatCompletion, err
}

func joinResponses(stream []byte) (any, error) {
	all, err := events(stream)
	for _, data := range all {
		var event responses.ResponseStreamEventUnion
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, err
		}
		if done, ok := event.AsAny().(responses.ResponseCompletedEvent); ok {
			return []byte(done.Response.RawJSON()), nil
		}
	}
	return nil, fmt.Errorf("no response.completed: %v", err)
}

// joinInteractions reads the events into the SDK's types and puts the steps together, which the
// SDK leaves to its callers.
func joinInteractions(stream []byte) (any, error) {
	all, err := events(stream)
	if err != nil {
		return nil, err
	}
	var steps []interactions.FunctionCallStep
	arguments := ""
	for _, data := range all {
		var event interactions.InteractionSSEEvent
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, err
		}
		switch {
		case event.Type == interactions.InteractionSSEEventTypeUnknown:
			return nil, fmt.Errorf("the SDK does not know the event %s", data)
		case event.StepStart != nil && event.StepStart.Step.FunctionCallStep != nil:
			steps, arguments = append(steps, *event.StepStart.Step.FunctionCallStep), ""
		case event.StepDelta != nil && event.StepDelta.Delta.ArgumentsDelta != nil:
			arguments += *event.StepDelta.Delta.ArgumentsDelta.Arguments
		case event.StepStop != nil && arguments != "":
			if err := json.Unmarshal([]byte(arguments), &steps[len(steps)-1].Arguments); err != nil {
				return nil, err
			}
			arguments = ""
		}
	}
	return map[string]any{"object": "interaction", "status": "requires_action", "steps": steps}, nil
}

func joinAnthropic(stream []byte) (any, error) {
	all, err := events(stream)
	var joined anthropic.Message
	for _, data := range all {
		var event anthropic.MessageStreamEventUnion
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, err
		}
		if err := joined.Accumulate(event); err != nil {
			return nil, err
		}
	}
	return joined.ToParam(), err
}

func joinGemini(stream []byte) (any, error) {
	all, err := events(stream)
	if err != nil {
		return nil, err
	}
	return joinChunks(all)
}

func joinGeminiArray(stream []byte) (any, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(stream, &all); err != nil {
		return nil, err
	}
	chunks := make([][]byte, len(all))
	for i, raw := range all {
		chunks[i] = raw
	}
	return joinChunks(chunks)
}

// joinChunks joins chunks as the chat of Google's SDK does: their parts are one content.
func joinChunks(chunks [][]byte) (any, error) {
	joined := &genai.Content{Role: genai.RoleModel}
	for _, data := range chunks {
		var chunk genai.GenerateContentResponse
		if err := json.Unmarshal(data, &chunk); err != nil {
			return nil, err
		}
		joined.Parts = append(joined.Parts, chunk.Candidates[0].Content.Parts...)
	}
	return joined, nil
}

// joinFrames returns the events in binary frames, as the SDK decodes them, as JSON Lines.
func joinFrames(stream []byte) (any, error) {
	var out bytes.Buffer
	for r := bytes.NewReader(stream); r.Len() > 0; {
		message, err := eventstream.NewDecoder().Decode(r, nil)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "{%q:%s}\n", message.Headers.Get(":event-type").String(), message.Payload)
	}
	return out.Bytes(), nil
}

// TestRecordedStreams is TestStreams for the streams that Anthropic's SDK has recorded.
func TestRecordedStreams(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/anthropics/anthropic-sdk-go/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "toolrunner/testdata/cassettes/*stream*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	settings, calls := reflectingTools(t, "get_weather"), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The bodies are block scalars, in which the lines of the stream are indented.
		text = bytes.ReplaceAll(text, []byte("\n      "), []byte("\n"))
		for _, part := range bytes.Split(text, []byte("event: message_start\n"))[1:] {
			stream, _, _ := bytes.Cut(part, []byte("\n    headers:"))
			if !bytes.Contains(stream, []byte(`"type":"tool_use"`)) {
				continue
			}
			calls++
			stream = append([]byte("event: message_start\n"), stream...)
			message, err := joinAnthropic(stream)
			if err != nil {
				t.Fatal(err)
			}
			response, err := json.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			got, want := string(toolreg(t, settings, string(stream), "call", "--format", "anthropic", "--yes")), string(toolreg(t, settings, string(response), "call", "--format", "anthropic", "--yes"))
			if got != want || !strings.Contains(got, "SanFrancisco") {
				t.Errorf("%s: the answers to the stream are\n%s\nthose to the response of the SDK\n%s", filepath.Base(file), got, want)
			}
		}
	}
	if calls < 2 {
		t.Errorf("%d recorded streams with calls", calls)
	}
}
