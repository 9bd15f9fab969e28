package dialogue

import (
	"fmt"
	"strings"
)

// Formats returns every format. The slice is the caller's.
func Formats() []Format {
	return []Format{
		{"openai", decodeOpenAI, replyOpenAI},
		{"openai-responses", decodeResponses, replyResponses},
		{"anthropic", decodeAnthropic, replyAnthropic},
		{"bedrock", decodeBedrock, replyBedrock},
		{"mistral", decodeMistral, replyMistral},
		{"gemini", decodeGemini, replyGemini},
		{"mcp", decodeMCP, replyMCP},
	}
}

// Lookup finds a format by its name.
func Lookup(name string) (Format, error) {
	names := make([]string, 0, 7)
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("unknown format %q for a model's calls; use one of %s", name, strings.Join(names, ", "))
}
