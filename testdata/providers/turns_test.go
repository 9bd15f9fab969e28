package providers_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/interactions"
)

var update = flag.Bool("update", false, "rewrite the answers in turns")

// turn is a response in the folder turns. Together those of a format have every
// kind of call and of content that docs/providers.md names.
type turn struct {
	file, format string
	read         func(response []byte) error // into the SDK's type
	answer       func(line []byte) error     // into the SDK's type
}

func turns() []turn {
	return []turn{
		{"openai", "openai", readOpenAI, func(line []byte) error { return decode(line, &openai.ChatCompletionMessageParamUnion{}) }},
		{"openai-responses", "openai-responses", readResponses, func(line []byte) error { return decode(line, &responses.ResponseInputItemUnionParam{}) }},
		{"anthropic", "anthropic", readAnthropic, func(line []byte) error { return decode(line, &anthropic.MessageParam{}) }},
		{"bedrock", "bedrock", readBedrock, func(line []byte) error { return decodeShape(line, &types.Message{}) }},
		{"mistral", "mistral", func(data []byte) error { return nil }, func(line []byte) error { return decodeStrictly(line, &mistralMessage{}) }},
		{"gemini", "gemini", func(data []byte) error { return decodeStrictly(data, &genai.GenerateContentResponse{}) }, func(line []byte) error { return decodeStrictly(line, &genai.Content{}) }},
		{"gemini-live", "gemini", func(data []byte) error { return decodeStrictly(data, &genai.LiveServerMessage{}) }, func(line []byte) error { return decodeStrictly(line, &genai.LiveClientMessage{}) }},
		{"gemini-interactions", "gemini-interactions", readInteraction, func(line []byte) error { return decode(line, &interactions.Step{}) }},
		{"mcp", "mcp", func([]byte) error { return nil }, decodeMCP},
	}
}

// TestTurns has every kind of call answered, and what the server runs passed over.
// The answers are kept beside the responses.
func TestTurns(t *testing.T) {
	for _, tt := range turns() {
		t.Run(tt.file, func(t *testing.T) {
			response, err := os.ReadFile(filepath.Join("turns", tt.file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.read(response); err != nil {
				t.Errorf("the response: %v", err)
			}
			got := toolreg(t, filepath.Join(shared.dir, "kinds.json"), string(response), "call", "--format", tt.format, "--yes")
			for line := range strings.Lines(string(got)) {
				if err := tt.answer([]byte(line)); err != nil {
					t.Errorf("%v\n%s", err, line)
				}
			}
			file := filepath.Join("turns", tt.file+".answers.jsonl")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != string(got) {
				t.Errorf("the answers are not those of %s (%v; -update writes them):\n%s", file, err, got)
			}
		})
	}
}

// TestTurnsHaveEveryKind holds the responses against the table of kinds.
func TestTurnsHaveEveryKind(t *testing.T) {
	table := readTable(t, "### Kinds of calls", 0)
	last := slices.Index(table[0], "rejected (exit code 2)")
	for _, row := range table[1:] {
		format := codeWords(row[0])[0]
		response, err := os.ReadFile(filepath.Join("turns", format+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range codeWords(strings.Join(row[1:last], " ")) {
			if kind != "_call" && !strings.Contains(string(response), `"`+kind+`"`) {
				t.Errorf("%s: no %s in the response", format, kind)
			}
		}
	}
}

func readOpenAI(data []byte) error {
	var completion openai.ChatCompletion
	if err := json.Unmarshal(data, &completion); err != nil {
		return err
	}
	for _, call := range completion.Choices[0].Message.ToolCalls {
		if err := known(call.AsAny()); err != nil {
			return err
		}
	}
	return nil
}

func readResponses(data []byte) error {
	var response responses.Response
	if err := json.Unmarshal(data, &response); err != nil {
		return err
	}
	for _, item := range response.Output {
		if err := known(item.AsAny()); err != nil {
			return err
		}
	}
	return nil
}

func readAnthropic(data []byte) error {
	var message anthropic.Message
	if err := json.Unmarshal(data, &message); err != nil {
		return err
	}
	for _, block := range message.Content {
		if err := known(block.AsAny()); err != nil {
			return err
		}
	}
	return nil
}

func readBedrock(data []byte) error {
	var response struct {
		Output struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(data, &response); err != nil {
		return err
	}
	return decodeShape(response.Output.Message, &types.Message{})
}

// known reports an error for a variant of a union that the SDK of OpenAI or of
// Anthropic does not know, or of which it does not know a field.
func known(variant any) error {
	v := reflect.ValueOf(variant)
	if !v.IsValid() {
		return fmt.Errorf("the SDK does not know an item")
	}
	if extra := v.FieldByName("JSON").FieldByName("ExtraFields"); extra.IsValid() && extra.Len() > 0 {
		return fmt.Errorf("%s: the SDK does not know the fields %v", v.Type(), extra.MapKeys())
	}
	return nil
}

// readInteraction reads an interaction, all of whose steps the SDK must know.
func readInteraction(data []byte) error {
	var interaction interactions.Interaction
	if err := json.Unmarshal(data, &interaction); err != nil {
		return err
	}
	for _, step := range interaction.Steps {
		if step.Type == interactions.StepTypeUnknown {
			return fmt.Errorf("the SDK does not know the step %s", step.UnknownRaw)
		}
	}
	return nil
}
